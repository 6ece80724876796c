"""What the controller did, as lines of the log: the events that an operator wants to see pass by."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lc_events.domain import events as e
from lc_events.domain.events import Event

__all__ = ["log_events"]

_log = logging.getLogger("lc_events.jobs")


def log_events(events: Sequence[Event]) -> None:
    """One line for each event that moves a job or a dataset on; what failed is a warning."""
    for event in events:
        if (words := _words(event)) is not None:
            failed = isinstance(event, (e.TriggerFailed, e.DatasetUnreadable))
            _log.log(logging.WARNING if failed else logging.INFO, "%s: %s", event.originator_id, words)


def _words(event: Event) -> str | None:
    match event:
        case e.GlobalManagerMessageReceived() if event.generation is not None:
            return f"inserted, generation {event.generation}"
        case e.JobDeleted() | e.DatasetDeleted():
            return "deleted"
        case e.JobAdopted():
            return f"adopted after round {event.round}"
        case e.TrainingTriggered():
            return f"round {event.round} trains on {event.samples} samples"
        case e.EvaluationTriggered():
            return f"round {event.round} is evaluated on {event.samples} samples"
        case e.ModelDeployed():
            return f"model of round {event.round} deployed to {event.url}"
        case e.WorkerResultReceived():
            return f"worker {event.worker}: {event.kind} {event.status}"
        case e.TriggerFailed():
            return f"{event.stage} of round {event.round}, attempt {event.attempt}: {event.error}"
        case e.DatasetUnreadable():
            return event.error
        case e.DatasetReset():
            return f"counted anew: {event.cause}"
    return None
