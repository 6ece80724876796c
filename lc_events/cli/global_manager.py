"""A global manager's store to read: its jobs with their conditions, under the same commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lc_events.application.audit.archive import Archive, StoreKind
from lc_events.application.broken import DEFECTS, misfit
from lc_events.application.journal import open_journal
from lc_events.gm.dataset import GmDataset, evolve_dataset
from lc_events.gm.events import GM_EVENTS
from lc_events.gm.job import GmJob, evolve_job
from lc_events.gm.ledger import SOURCE, State, fold_stream
from lc_events.gm.views import dataset_view, job_view
from lc_events.messages.names import JOB_KIND, kind_of

if TYPE_CHECKING:
    from lc_events.application.journal import Journal
    from lc_events.domain.events import Event
    from lc_events.messages.json import JsonObject

__all__ = ["GLOBAL_MANAGER", "gm_archive"]


def gm_archive(journal: Journal) -> Archive[State]:
    """The store that `journal` opened, read by the global manager's own events."""
    return Archive(open_journal(journal.path, GM_EVENTS), GLOBAL_MANAGER, SOURCE)


def _fresh(stream: str) -> State:
    return GmJob(stream) if kind_of(stream) == JOB_KIND else GmDataset(stream)


def _fold(stream: str, events: Iterable[Event], _start: State | None) -> State:
    return fold_stream(stream, events)


def _evolve(state: State, event: Event) -> State:
    return evolve_job(state, event) if isinstance(state, GmJob) else evolve_dataset(state, event)


def _view(state: State, _node: str) -> JsonObject:
    return job_view(state) if isinstance(state, GmJob) else dataset_view(state)


def _follow(stream: str, events: Iterable[Event], notes: list[str]) -> Iterator[Event]:
    """A global manager's decisions are not derived again; its events must at least fit one after another."""
    notes.append("decisions of a global manager are not derived again")
    state = _fresh(stream)
    for event in events:
        try:
            state = _evolve(state, event)
        except DEFECTS as error:
            raise misfit(stream, event.originator_version, error) from error
        yield event


GLOBAL_MANAGER: StoreKind[State] = StoreKind(GM_EVENTS, _fold, _evolve, _fresh, _view, _follow)
