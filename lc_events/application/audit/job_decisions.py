"""The decisions of a job, taken again by the domain's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lc_events.application.audit import commands
from lc_events.application.audit.derivation import Decided
from lc_events.domain import decisions as d
from lc_events.domain import events as e
from lc_events.domain import outcomes
from lc_events.domain.events import Event
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve
from lc_events.messages.json import JsonObject

__all__ = ["JobDecisions"]


class JobDecisions:
    """Remembers GM's whole list of conditions, since an event holds only the new ones."""

    def __init__(self) -> None:
        self._conditions: Sequence[JsonObject] = ()

    def decide(self, state: JobState, event: Event, following: Event | None) -> Decided[JobState] | None:
        """What the command behind an event gives today."""
        match event:
            case e.Ticked() if event.cause != "adopted":
                facts = commands.facts(event, state)
                return d.tick(state, facts, cause=event.cause, as_of=event.as_of, count=event.count)
            case e.SamplesArrived():
                return d.add_samples(state, commands.samples(event, state), commands.facts(event, state))
            case e.GlobalManagerMessageReceived():
                return self._message(state, event)
            case e.JobDeleted() if isinstance(following, e.GlobalManagerMessageReceived):
                return self._message(state, following) if event.cause == "replaced" else None
            case e.ReportsConfirmed():
                return d.confirm_reports(state, event.versions, event.time)
            case e.DuplicateReceived():
                return d.receive_duplicate(state, event.id, event.worker, event.time)
            case e.WorkerResultReceived():
                return _fact(state, replace(event, resource_kind=state.kind))
        return _outcome(state, event)

    def evolve(self, state: JobState, event: Event) -> JobState:
        """The fold."""
        return evolve(state, event)

    def is_same(self, derived: Event, recorded: Event) -> bool:
        """Whether they are the same, apart from two things that cannot be derived.

        GM's list may hold entries that we never saw; trouble of a dataset at an adoption is recorded nowhere else.
        """
        if isinstance(recorded, e.GlobalManagerMessageReceived) and isinstance(derived, type(recorded)):
            derived = replace(derived, conditions_hash=recorded.conditions_hash)
        if isinstance(recorded, e.Ticked) and isinstance(derived, e.Ticked) and recorded.cause == "adopted":
            is_note = (derived.reason, recorded.reason) == ("no_samples", "dataset")
            derived = replace(derived, reason=recorded.reason, note=recorded.note) if is_note else derived
        return derived == recorded

    def _message(self, state: JobState, event: e.GlobalManagerMessageReceived) -> Decided[JobState]:
        if event.operation == "delete":
            self._conditions = ()
            message = commands.job_message(event, state, (), None)
        else:
            known = self._conditions if event.generation is None else ()
            self._conditions = commands.conditions_after(known, event)
            message = commands.job_message(event, state, self._conditions, None)
        return d.receive_gm_message(state, message, commands.facts(event, state))


def _outcome(state: JobState, event: Event) -> Decided[JobState] | None:
    """What came of an intent."""
    match event:
        case e.TrainDataWritten() | e.EvalDataWritten():
            stage = "Train" if isinstance(event, e.TrainDataWritten) else "Eval"
            return outcomes.record_files(state, stage, event.round, event.files, event.time)
        case e.ModelDeployed():
            return outcomes.record_model(
                state, event.round, url=event.url, sha256=event.sha256, size=event.size, now=event.time
            )
        case e.TriggerFailed():
            return outcomes.record_failure(
                state,
                event.stage,
                event.round,
                attempt=event.attempt,
                code=event.code,
                error=event.error,
                final=event.final,
                now=event.time,
            )
    return None


def _fact(state: JobState, event: Event) -> Decided[JobState]:
    return [event], evolve(state, event)
