"""The decisions of a dataset, taken again by the domain's own functions; what was seen of its file is a fact."""

from __future__ import annotations

from lc_events.application.audit import commands
from lc_events.application.audit.derivation import Decided
from lc_events.domain import dataset as d
from lc_events.domain import events as e
from lc_events.domain.dataset import DatasetState
from lc_events.domain.events import Event

__all__ = ["DatasetDecisions"]


class DatasetDecisions:
    """See `derivation.Subject`."""

    def decide(self, state: DatasetState, event: Event, _following: Event | None) -> Decided[DatasetState] | None:
        """What the command behind an event gives today."""
        match event:
            case e.GlobalManagerMessageReceived():
                return d.receive_dataset_message(state, commands.dataset_message(event, state), event.time)
            case e.DuplicateReceived():
                return d.duplicate_dataset_message(state, event.id, event.time)
            case e.ReportsConfirmed():
                return d.confirm_dataset_reports(state, event.versions, event.time)
            case e.DatasetObserved():
                return d.observe_dataset(
                    state,
                    rows=(event.rows[0], event.rows[1]),
                    span=(event.bytes[0], event.bytes[1]),
                    mark=event.mark,
                    now=event.time,
                    spooled=None if event.spooled is None else (event.spooled[0], event.spooled[1]),
                )
            case e.DatasetReset():
                return d.reset_dataset(state, cause=event.cause, mark=event.mark, now=event.time)
            case e.DatasetUnreadable():
                return d.unreadable_dataset(state, code=event.code, error=event.error, now=event.time)
        return None

    def evolve(self, state: DatasetState, event: Event) -> DatasetState:
        """The fold."""
        return d.evolve_dataset(state, event)

    def is_same(self, derived: Event, recorded: Event) -> bool:
        """Nothing of a dataset may differ."""
        return derived == recorded
