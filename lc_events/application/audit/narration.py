"""An event in words, for people: what it says beyond its name, and the verdict that it carries."""

from __future__ import annotations

from collections.abc import Sequence

from lc_events.application.audit.wording import failure
from lc_events.domain import events as e
from lc_events.domain.dataset import DatasetState
from lc_events.domain.events import Event
from lc_events.domain.job import JobState
from lc_events.domain.views import verdict_detail
from lc_events.messages.json import Json, JsonObject, dumps

__all__ = ["narrate"]

_MOST_TEXT = 200
"""Of text that others wrote; the whole of it stands in the JSON output."""


def narrate(event: Event, state: object) -> str:
    """One line; `state` is the one after the event. Texts of others are cut, not yet made safe to show."""
    return _job_event(event, state) if isinstance(state, JobState) else _other_event(event, state)


def _job_event(event: Event, state: JobState) -> str:
    match event:
        case e.GlobalManagerMessageReceived():
            return _with_verdict(_message(event, state), event.reason, state)
        case e.Ticked():
            as_of = f" as of {event.as_of}" if event.as_of else ""
            return _with_verdict(f"{event.cause}{as_of}", event.reason, state)
        case e.SamplesArrived():
            return _with_verdict(_samples(event), event.reason, state)
        case e.TrainingTriggered():
            verdict = f": {verdict_detail(state.verdict)}" if state.verdict is not None else ""
            return f"round {event.round} trains on {event.samples} samples{verdict}"
        case e.EvaluationTriggered():
            return f"round {event.round} is evaluated on {event.samples} samples"
        case e.DeployTriggered():
            model = "there is no model to deploy" if event.model is None else f"{event.model['url']} to {event.target}"
            return f"round {event.round}: {model}"
        case e.TrainDataWritten() | e.EvalDataWritten():
            return f"round {event.round}: {_files(event.files)}; reported as Ready"
        case e.ModelDeployed():
            return f"round {event.round}: {event.url}, {event.size} bytes, sha256 {event.sha256[:12]}"
        case e.TriggerFailed():
            final = ", given up" if event.final else ""
            return _cut(f"{event.stage} of round {event.round}, attempt {event.attempt}{final}: {event.error}")
        case e.WorkerResultReceived():
            return _cut(
                f"{event.worker}: {event.kind} {event.status}{_metrics(event.results)}{failure(event.owner_info)}"
            )
        case e.JobAdopted():
            return f"from another controller, which wrote {event.train_data_url}: goes on after round {event.round}"
    return _other_event(event, state)


def _other_event(event: Event, state: object) -> str:
    match event:
        case e.GlobalManagerMessageReceived():
            return event.operation + _begins(event)
        case e.DuplicateReceived():
            return _cut(f"again from {event.worker or 'the global manager'}: {event.id or 'without an id'}")
        case e.ReportsConfirmed():
            return f"the global manager has version {', '.join(map(str, event.versions))} on its disk"
        case e.JobDeleted():
            return f"{event.cause}: this life of the name ended"
        case e.DatasetObserved():
            return f"{event.records} records, {event.rows[1] - event.rows[0]} of them new"
        case e.DatasetReset():
            return _cut(f"{event.cause}: what the file holds now is new (file {event.epoch})")
        case e.DatasetUnreadable():
            return _cut(f"{event.code}: {event.error}")
        case e.DatasetDeleted():
            return "taken away by the global manager"
    return _fields(event) if not isinstance(state, (JobState, DatasetState)) else ""


def _message(event: e.GlobalManagerMessageReceived, state: JobState) -> str:
    words = [event.operation + _begins(event)]
    words += [f"{c.get('stage')}/{c.get('type')}" for c in event.conditions[-3:]]
    if event.spec is not None and event.generation is None:
        words.append("spec changed")
    if not event.conditions and state.stage is not None and event.operation != "delete":
        words.append(f"still {state.stage}/{state.type}")
    return _cut(", ".join(words))


def _begins(event: e.GlobalManagerMessageReceived) -> str:
    return f", generation {event.generation} begins" if event.generation is not None else ""


def _samples(event: e.SamplesArrived) -> str:
    if not event.train and not event.eval:
        return "counting begins at the present end"
    return f"{event.train + event.eval} new: {event.train} train, {event.eval} evaluate"


def _with_verdict(text: str, reason: str | None, state: JobState) -> str:
    return text if reason is None or state.verdict is None else _cut(f"{text}; {verdict_detail(state.verdict)}")


def _files(files: Sequence[JsonObject]) -> str:
    return ", ".join(f"{file['url']} ({file['records']} samples, {file['size']} bytes)" for file in files)


def _metrics(results: Sequence[Json] | None) -> str:
    found = [result["metrics"] for result in results or () if isinstance(result, dict) and result.get("metrics")]
    return f" {dumps(found[0]).decode()}" if found else ""


def _fields(event: Event) -> str:
    values = ((name, getattr(event, name)) for name in event.__slots__)
    return _cut(" ".join(f"{name}={dumps(value).decode()}" for name, value in values if value not in (None, ())))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
