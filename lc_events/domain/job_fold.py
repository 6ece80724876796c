"""The fold of a job's events: `evolve(state, event) -> state`, and nothing else changes a state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import TypeVar

from lc_events.domain import events as e
from lc_events.domain.backlog import Unconfirmed
from lc_events.domain.conditions import READY, is_proven, models_of, rank_of_result, waiting_key
from lc_events.domain.job import Failure, Intent, JobState, Place, Report, SampleRange, Source, Verdict
from lc_events.domain.trigger import Trigger

__all__ = ["evolve", "fold"]

KEPT_REPORTS = 20
"""How many answered waiting conditions are remembered (CONTRACT section 3)."""


def evolve(state: JobState, event: e.Event) -> JobState:
    """The state after one more event; the state before is left as it was."""
    after = state.copy()
    _apply(after, event)
    return after


def fold(stream: str, events: Iterable[e.Event], start: JobState | None = None) -> JobState:
    """The state after all `events`, in version order."""
    state = JobState(stream) if start is None else start.copy()
    for event in events:
        _apply(state, event)
    return state


def _apply(state: JobState, event: e.Event) -> None:
    state.version = event.originator_version
    state.updated = event.time
    _APPLY[type(event)](state, event)


def _gm_message_received(state: JobState, event: e.GlobalManagerMessageReceived) -> None:
    state.gm_messages += 1
    state.gm_message = event.id or state.gm_message
    if event.zone is not None:
        state.zone = event.zone
    if event.model_places is not None:
        state.model_places = tuple(event.model_places)
    if event.operation == "delete":
        return
    if event.generation is not None:
        _begin_generation(state, event.generation)
    if event.kind is not None:
        state.kind = event.kind
    if event.metadata is not None:
        state.metadata = event.metadata
    if event.spec is not None:
        before = (state.dataset_name, state.train_prob)
        state.spec = event.spec
        state.trigger = Trigger.read(event.spec)
        if state.dataset_name != before[0]:
            if state.place is not None:
                state.adopted_round = 0
            state.place = None
        if state.train_prob != before[1]:
            state.split_seen = 0
    _apply_conditions(state, event)
    _judged(state, event.reason, event.samples, event.note, event.time)


def _begin_generation(state: JobState, generation: int) -> None:
    fresh = JobState(state.stream)
    kept = {
        "stream",
        "version",
        "updated",
        "zone",
        "model_places",
        "gm_message",
        "spool_ends",
        "unconfirmed",
        "ticks",
        "gm_messages",
        "worker_results",
        "duplicates",
    }
    for f in fields(JobState):
        if f.name not in kept:
            setattr(state, f.name, getattr(fresh, f.name))
    state.generation = generation


def _apply_conditions(state: JobState, event: e.GlobalManagerMessageReceived) -> None:
    state.conditions_count = event.conditions_count
    state.conditions_hash = event.conditions_hash
    if event.conditions_count == len(event.conditions):
        # GM wrote its list anew: what the old one said no longer holds, and nothing in it is known to be later.
        state.last_condition = state.train_models = state.eval_models = None
    elif event.conditions:
        state.unconfirmed = state.unconfirmed.only(lambda u: not is_proven(u.stage, u.rank, event.conditions))
    for condition in event.conditions:
        state.last_condition = condition
        if (models := models_of(condition)) is not None and condition.get("stage") == "Train":
            state.train_models = models
        elif models is not None and condition.get("stage") == "Eval":
            state.eval_models = models
    key = waiting_key(state.uid, state.conditions_count, state.last_condition)
    if key == state.waiting:
        return
    state.waiting = key
    if key is None or state.report_of(key) is not None:
        return
    if state.stage == "Train":
        state.train_status = state.eval_status = state.deploy_status = "ready"
    if state.intent is not None and (state.intent.stage, state.intent.round) == (state.stage, state.round):
        state.intent = state.intent._replace(key=key)


def _judged(state: JobState, reason: str | None, samples: int, note: str | None, as_of: str) -> None:
    if reason is not None and state.stage is not None:
        state.verdict = Verdict(as_of, state.stage, reason, samples, state.trigger, state.zone, note)


def _duplicate_received(state: JobState, _event: e.DuplicateReceived) -> None:
    state.duplicates += 1


def _reports_confirmed(state: JobState, event: e.ReportsConfirmed) -> None:
    state.unconfirmed = state.unconfirmed.without(event.versions)


def _worker_result_received(state: JobState, event: e.WorkerResultReceived) -> None:
    state.worker_results += 1
    stage, rank = rank_of_result(event.kind, event.status)
    report = Unconfirmed(event.originator_version, stage, rank, is_result=True, time=event.time)
    state.unconfirmed = state.unconfirmed.added(report)


def _ticked(state: JobState, event: e.Ticked) -> None:
    state.ticks += event.count
    if event.zone is not None:
        state.zone = event.zone
    if event.model_places is not None:
        state.model_places = tuple(event.model_places)
    _judged(state, event.reason, event.samples, event.note, event.as_of or event.time)


def _samples_arrived(state: JobState, event: e.SamplesArrived) -> None:
    number = _source_number(state, event)
    state.place = Place(event.epoch, event.rows[1], event.bytes[1])
    if event.spooled is not None:
        first, last = event.spooled
        state.spool_ends = {**state.spool_ends, state.sources[number].dataset: last}
        middle = first + event.train
        state.train_pending = _extended(state.train_pending, SampleRange(first, middle, number))
        state.eval_pending = _extended(state.eval_pending, SampleRange(middle, last, number))
    state.seen += event.train + event.eval
    state.split_seen += event.train + event.eval
    state.train_pending_count += event.train
    state.train_total += event.train
    state.eval_total += event.eval
    note = state.model_note if event.reason == "no_model" else None
    _judged(state, event.reason, event.samples, note, event.time)


def _extended(ranges: tuple[SampleRange, ...], new: SampleRange) -> tuple[SampleRange, ...]:
    """The ranges and one more; where all samples train, they stay one range."""
    if new.first == new.last:
        return ranges
    if ranges and (ranges[-1].last, ranges[-1].source) == (new.first, new.source):
        return (*ranges[:-1], ranges[-1]._replace(last=new.last))
    return (*ranges, new)


def _source_number(state: JobState, event: e.SamplesArrived) -> int:
    known = state.source
    source = Source(
        event.dataset if event.dataset is not None else known.dataset if known else "",
        event.url if event.url is not None else known.url if known else "",
        event.format if event.format is not None else known.format if known else "txt",
        (event.header or None) if event.header is not None else known.header if known else None,
    )
    if source != known:
        if source not in state.sources:
            state.sources = (*state.sources, source)
        state.source_number = state.sources.index(source)
    return state.source_number


def _training_triggered(state: JobState, event: e.TrainingTriggered) -> None:
    state.round = event.round
    taken = sum(last - first for first, last in event.spooled)
    _, state.train_pending = _split_first(state.train_pending, taken)
    state.train_pending_count -= taken
    _intend(state, "Train", event)


def _evaluation_triggered(state: JobState, event: e.EvaluationTriggered) -> None:
    taken, state.eval_pending = _split_first(state.eval_pending, sum(last - first for first, last in event.taken))
    before = state.eval_ranges(event.round)
    state.eval_rounds = (*state.eval_window(event.round), (event.round, (*before, *taken)))
    state.evaluated_round = event.round
    _intend(state, "Eval", event)


def _split_first(
    ranges: tuple[SampleRange, ...], count: int
) -> tuple[tuple[SampleRange, ...], tuple[SampleRange, ...]]:
    """The first `count` samples, and the rest."""
    first, rest = [], []
    for r in ranges:
        taken = min(count, r.size)
        count -= taken
        if taken:
            first.append(r._replace(last=r.first + taken))
        if taken < r.size:
            rest.append(r._replace(first=r.first + taken))
    return tuple(first), tuple(rest)


def _intend(
    state: JobState, stage: str, event: e.TrainingTriggered | e.EvaluationTriggered | e.DeployTriggered
) -> None:
    state.intent = Intent(stage, event.round, event.originator_version, tuple(event.waiting), event)
    state.failure = None


def _train_data_written(state: JobState, event: e.TrainDataWritten) -> None:
    state.train_data_url = str(event.input["dataURL"])
    state.train_status = "completed"
    _reported(state, "Train", event)


def _eval_data_written(state: JobState, event: e.EvalDataWritten) -> None:
    state.eval_data_url = str(event.input["dataURL"])
    state.eval_status = "completed"
    _reported(state, "Eval", event)


def _deploy_triggered(state: JobState, event: e.DeployTriggered) -> None:
    _intend(state, "Deploy", event)
    if event.model is None:
        state.deploy_status = "completed"
        _reported(state, "Deploy", event)


def _model_deployed(state: JobState, event: e.ModelDeployed) -> None:
    state.model = {
        "round": event.round,
        "url": event.url,
        "format": event.format,
        "sha256": event.sha256,
        "size": event.size,
        "time": event.time,
    }
    state.deploy_status = "completed"
    _reported(state, "Deploy", event)


def _trigger_failed(state: JobState, event: e.TriggerFailed) -> None:
    since = state.failure.since if state.failure else event.time
    state.failure = Failure(event.code, event.error, event.attempt, event.time, since)
    if event.final:
        state.deploy_status = "completed"
        _reported(state, event.stage, event)


def _reported(state: JobState, stage: str, event: e.Event) -> None:
    """A report went up: it answers the waiting condition and takes the place of an older report."""
    if state.intent is None:
        return
    report = Report(state.intent.key, stage, state.intent.round, event.originator_version)
    state.reports = (*state.reports, report)[-KEPT_REPORTS:]
    newest = Unconfirmed(event.originator_version, stage, READY, is_result=False, time=event.time)
    state.unconfirmed = state.unconfirmed.only(lambda u: u.is_result).added(newest)
    state.intent = None
    if not isinstance(event, e.TriggerFailed):
        state.failure = None


def _job_adopted(state: JobState, event: e.JobAdopted) -> None:
    state.round = state.adopted_round = event.round
    state.train_data_url = event.train_data_url
    state.adopted_format = event.format
    if state.stage in ("Eval", "Deploy"):
        state.existing_eval_round = event.round
    if state.stage == "Deploy" or (state.stage == "Eval" and state.type != "Waiting"):
        state.evaluated_round = event.round
    state.train_status, state.eval_status, state.deploy_status = _adopted_statuses(state.stage, state.type)


def _adopted_statuses(stage: str | None, type_: str | None) -> tuple[str, str, str]:
    """What the other controller reported since the last Train/Waiting."""
    stages = ("Train", "Eval", "Deploy")
    passed = stages.index(stage) if stage in stages else 0
    reported = passed if type_ == "Waiting" else passed + 1
    first, second, third = ("completed" if number < reported else "ready" for number in range(3))
    return first, second, third


def _job_deleted(state: JobState, event: e.JobDeleted) -> None:
    state.deleted = True
    state.deleted_at = event.time
    state.unconfirmed = state.unconfirmed.only(lambda u: u.is_result)
    state.waiting = None
    state.intent = None
    state.failure = None


E_ = TypeVar("E_", bound=e.Event)
_APPLY: dict[type[e.Event], Callable[[JobState, e.Event], None]] = {}


def _on(event_class: type[E_], apply: Callable[[JobState, E_], None]) -> None:
    _APPLY[event_class] = apply  # type: ignore[assignment]


_on(e.GlobalManagerMessageReceived, _gm_message_received)
_on(e.DuplicateReceived, _duplicate_received)
_on(e.ReportsConfirmed, _reports_confirmed)
_on(e.WorkerResultReceived, _worker_result_received)
_on(e.Ticked, _ticked)
_on(e.SamplesArrived, _samples_arrived)
_on(e.TrainingTriggered, _training_triggered)
_on(e.TrainDataWritten, _train_data_written)
_on(e.EvaluationTriggered, _evaluation_triggered)
_on(e.EvalDataWritten, _eval_data_written)
_on(e.DeployTriggered, _deploy_triggered)
_on(e.ModelDeployed, _model_deployed)
_on(e.TriggerFailed, _trigger_failed)
_on(e.JobAdopted, _job_adopted)
_on(e.JobDeleted, _job_deleted)
