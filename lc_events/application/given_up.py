"""What a job has given up: a model that was not deployed, and no other one since."""

from __future__ import annotations

from lc_events.application.journal import Journal
from lc_events.domain import events as e

__all__ = ["given_up"]

_NAMES = [event.__name__ for event in (e.TriggerFailed, e.ModelDeployed, e.JobDeleted)]
_MOST_REPEATS = 1000
"""At most so many failures that are tried again (one an hour is stored) are passed over."""


def given_up(journal: Journal, stream: str, *, until: int) -> e.TriggerFailed | None:
    """The newest final failure of a job up to a version; None once a model is deployed, or the job deleted."""
    for _ in range(_MOST_REPEATS):
        row = journal.rows.newest(stream, _NAMES, lte=until)
        event = None if row is None else journal.decode(row)
        if not isinstance(event, e.TriggerFailed):
            return None
        if event.final:
            return event
        until = event.originator_version - 1
    return None
