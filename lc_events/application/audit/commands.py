"""The commands behind recorded events: what was said to a job or dataset, so that it can be decided again."""

from __future__ import annotations

from collections.abc import Sequence

from lc_events.domain import events as e
from lc_events.domain.dataset import DatasetState
from lc_events.domain.decisions import Facts, Samples
from lc_events.domain.job import JobState
from lc_events.messages.gm import DownMessage, Operation
from lc_events.messages.json import JsonObject
from lc_events.messages.names import DATASET_KIND, JOB_KIND

__all__ = ["conditions_after", "dataset_message", "facts", "job_message", "samples", "told"]

_SOME_NOTE = "the dataset cannot be read"
"""`SamplesArrived` does not store what was wrong with the dataset, only that something was."""

_OPERATIONS: dict[str, Operation] = {"insert": "insert", "update": "update", "delete": "delete"}


def facts(event: e.GlobalManagerMessageReceived | e.Ticked | e.SamplesArrived, state: JobState) -> Facts:
    """What the decision knew from outside, and by which rules it fell; `state` is the one before the event."""
    zone, places = (None, None) if isinstance(event, e.SamplesArrived) else (event.zone, event.model_places)
    note = None
    if event.reason == "dataset":
        note = _SOME_NOTE if isinstance(event, e.SamplesArrived) else event.note
    known = state.model_places if places is None else tuple(places)
    return Facts(event.time, zone or state.zone, note, known, event.rules)


def conditions_after(before: Sequence[JsonObject], event: e.GlobalManagerMessageReceived) -> list[JsonObject]:
    """GM's whole list, of which an event stores only the entries that are new.

    Entries that are not known (a list that was trimmed, then grew at the front) are empty: they decide nothing.
    """
    count, new = event.conditions_count, event.conditions
    known = [*before, *new][max(0, len(before) + len(new) - count) :]
    return [*({} for _ in range(count - len(known))), *known]


def job_message(
    event: e.GlobalManagerMessageReceived, state: JobState, conditions: Sequence[JsonObject], spec: JsonObject | None
) -> DownMessage:
    """The message as it came, with GM's whole list and, if given, another spec; `state` is the one before the event."""
    known = state if event.generation is None else JobState(state.stream)
    content: JsonObject = {
        "kind": event.kind or known.kind,
        "metadata": known.metadata if event.metadata is None else event.metadata,
        "spec": spec or (known.spec if event.spec is None else event.spec),
        "status": {"conditions": list(conditions)},
    }
    return _message(JOB_KIND, state, event, content)


def told(state: JobState, conditions: Sequence[JsonObject]) -> DownMessage:
    """GM's message that the job, unchanged, now stands at these conditions."""
    status: JsonObject = {"conditions": list(conditions)}
    content: JsonObject = {"kind": state.kind, "metadata": state.metadata, "spec": state.spec, "status": status}
    return DownMessage(None, "update", JOB_KIND, state.namespace, state.name, content, None)


def dataset_message(event: e.GlobalManagerMessageReceived, state: DatasetState) -> DownMessage:
    """The message as it came."""
    content: JsonObject = {
        "kind": event.kind or state.kind,
        "metadata": state.metadata if event.metadata is None else event.metadata,
        "spec": state.spec if event.spec is None else event.spec,
    }
    return _message(DATASET_KIND, state, event, content)


def _message(
    kind: str, state: JobState | DatasetState, event: e.GlobalManagerMessageReceived, content: JsonObject
) -> DownMessage:
    operation = _OPERATIONS.get(event.operation, "update")
    return DownMessage(event.id, operation, kind, state.namespace, state.name, content, None)


def samples(event: e.SamplesArrived, state: JobState) -> Samples:
    """The batch as it was handed over; fields that are not stored are those of the batch before."""
    known = state.source
    header = (known.header if known else None) if event.header is None else event.header or None
    return Samples(
        dataset=_given(event.dataset, known.dataset if known else ""),
        url=_given(event.url, known.url if known else ""),
        format=_given(event.format, known.format if known else "txt"),
        header=header,
        epoch=event.epoch,
        rows=(event.rows[0], event.rows[1]),
        bytes=(event.bytes[0], event.bytes[1]),
        spooled=None if event.spooled is None else (event.spooled[0], event.spooled[1]),
    )


def _given(value: str | None, known: str) -> str:
    return known if value is None else value
