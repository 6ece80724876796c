"""A local controller's store: its streams fold to jobs and datasets, and its jobs decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lc_events.application.audit.archive import StoreKind
from lc_events.application.snapshot_json import State, read_state
from lc_events.domain.dataset import DatasetState, evolve_dataset, fold_dataset
from lc_events.domain.events import LC_EVENTS, Event, Registry
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve, fold
from lc_events.domain.views import dataset_view, job_view
from lc_events.errors import UsageError
from lc_events.messages.json import JsonObject
from lc_events.messages.names import JOB_KIND, kind_of

__all__ = ["CONTROLLER", "require_job_of_controller"]


def _fresh(stream: str) -> State:
    return JobState(stream) if kind_of(stream) == JOB_KIND else DatasetState(stream)


def _fold(stream: str, events: Iterable[Event], start: State | None) -> State:
    state = _fresh(stream) if start is None else start
    return fold(stream, events, state) if isinstance(state, JobState) else fold_dataset(stream, events, state)


def _evolve(state: State, event: Event) -> State:
    return evolve(state, event) if isinstance(state, JobState) else evolve_dataset(state, event)


def _view(state: State, node: str) -> JsonObject:
    if isinstance(state, JobState):
        return job_view(state, node)
    names = ("namespace", "name", "version", "generation", "deleted")
    return {"node": node, **{name: getattr(state, name) for name in names}, **dataset_view(state)}


def _follow(stream: str, events: Iterable[Event], notes: list[str]) -> Iterator[Event]:
    # Only `verify` needs what decides; other commands have to start fast.
    from lc_events.application.audit.deciding import follow_controller

    return follow_controller(stream, events, notes)


CONTROLLER: StoreKind[State] = StoreKind(Registry(LC_EVENTS), _fold, _evolve, _fresh, _view, _follow, read_state)


def require_job_of_controller(kind: StoreKind[Any], stream: str, command: str) -> None:
    """Raise UsageError unless a stream is a job in a local controller's store: only such a job decides anything.

    `kind` is that of the store which holds the stream, `command` what was asked of it.
    """
    if kind is not CONTROLLER or kind_of(stream) != JOB_KIND:
        raise UsageError(f"{stream} decides nothing here: {command} is of a job in a local controller's store")
