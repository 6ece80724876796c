"""A dataset: how many records its file holds, up to where they were counted, what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from lc_events.domain import events as e
from lc_events.domain.steps import Steps
from lc_events.messages.gm import DownMessage
from lc_events.messages.json import JsonObject
from lc_events.messages.names import OfStream

__all__ = [
    "DatasetState",
    "confirm_dataset_reports",
    "duplicate_dataset_message",
    "evolve_dataset",
    "fold_dataset",
    "is_of_data",
    "observe_dataset",
    "receive_dataset_message",
    "reset_dataset",
    "unreadable_dataset",
]

_UNREADABLE_PAUSE = timedelta(hours=1)
_OF_DATA = frozenset({"missing", "not_a_file", "csv_quote", "csv_header"})


class Problem(NamedTuple):
    """Why a dataset cannot be read, since when."""

    code: str
    error: str
    time: str


def is_of_data(code: str) -> bool:
    """Whether trouble lies in the data, looked at again every period, not in the way to it, tried again with pauses."""
    return code in _OF_DATA


@dataclass(slots=True)
class DatasetState(OfStream):
    """Where a dataset stands. Treat it as a value."""

    stream: str
    version: int = 0
    generation: int = 0
    deleted: bool = False
    updated: str = ""
    kind: str = "Dataset"
    metadata: JsonObject = field(default_factory=dict)
    spec: JsonObject = field(default_factory=dict)
    gm_message: str | None = None
    epoch: int = 1
    records: int = 0
    mark: JsonObject | None = None
    spool_end: int = 0
    problem: Problem | None = None
    unconfirmed: int | None = None
    gm_messages: int = 0
    duplicates: int = 0

    @property
    def is_live(self) -> bool:
        """Whether GM has inserted the dataset and not deleted it."""
        return self.generation > 0 and not self.deleted

    @property
    def url(self) -> str:
        """Where the file lies."""
        return str(self.spec.get("url", ""))

    @property
    def format(self) -> str:
        """`txt` or `csv`."""
        return str(self.spec.get("format", "txt")).lower()

    @property
    def offset(self) -> int:
        """The byte up to which records were counted."""
        offset = (self.mark or {}).get("offset", 0)
        return offset if isinstance(offset, int) else 0

    @property
    def note(self) -> str | None:
        """What keeps jobs from getting samples, in words."""
        if not self.is_live:
            return f"dataset {self.namespace}/{self.name} is not here"
        return None if self.problem is None else self.problem.error


def evolve_dataset(state: DatasetState, event: e.Event) -> DatasetState:
    """The state after one more event; the state before is left as it was."""
    after = replace(state)
    _apply(after, event)
    return after


def fold_dataset(stream: str, events: Iterable[e.Event], start: DatasetState | None = None) -> DatasetState:
    """The state after all `events`, in version order."""
    state = DatasetState(stream) if start is None else replace(start)
    for event in events:
        _apply(state, event)
    return state


def _apply(state: DatasetState, event: e.Event) -> None:
    state.version = event.originator_version
    state.updated = event.time
    _APPLY[type(event)](state, event)


def _gm_message_received(state: DatasetState, event: e.GlobalManagerMessageReceived) -> None:
    state.gm_messages += 1
    state.gm_message = event.id or state.gm_message
    if event.operation == "delete":
        return
    if event.generation is not None:
        state.generation = event.generation
        state.deleted = False
    state.kind = event.kind or state.kind
    state.metadata = state.metadata if event.metadata is None else event.metadata
    before = (state.url, state.format)
    state.spec = state.spec if event.spec is None else event.spec
    if (state.url, state.format) != before:
        state.problem = None


def _duplicate_received(state: DatasetState, _event: e.DuplicateReceived) -> None:
    state.duplicates += 1


def _reports_confirmed(state: DatasetState, event: e.ReportsConfirmed) -> None:
    if state.unconfirmed in event.versions:
        state.unconfirmed = None


def _observed(state: DatasetState, event: e.DatasetObserved) -> None:
    state.records = event.records
    state.mark = event.mark
    state.problem = None
    if event.spooled is not None:
        state.spool_end = event.spooled[1]
    if event.rows[0] != event.rows[1]:
        state.unconfirmed = event.originator_version


def _reset(state: DatasetState, event: e.DatasetReset) -> None:
    state.epoch = event.epoch
    state.records = event.records
    state.mark = event.mark
    state.problem = None
    state.unconfirmed = event.originator_version


def _unreadable(state: DatasetState, event: e.DatasetUnreadable) -> None:
    state.problem = Problem(event.code, event.error, event.time)


def _deleted(state: DatasetState, _event: e.DatasetDeleted) -> None:
    state.deleted = True
    state.problem = None
    state.unconfirmed = None


E_ = TypeVar("E_", bound=e.Event)
_APPLY: dict[type[e.Event], Callable[[DatasetState, e.Event], None]] = {}


def _on(event_class: type[E_], apply: Callable[[DatasetState, E_], None]) -> None:
    _APPLY[event_class] = apply  # type: ignore[assignment]


_on(e.GlobalManagerMessageReceived, _gm_message_received)
_on(e.DuplicateReceived, _duplicate_received)
_on(e.ReportsConfirmed, _reports_confirmed)
_on(e.DatasetObserved, _observed)
_on(e.DatasetReset, _reset)
_on(e.DatasetUnreadable, _unreadable)
_on(e.DatasetDeleted, _deleted)


_Decision = tuple[list[e.Event], DatasetState]


def receive_dataset_message(state: DatasetState, message: DownMessage, now: str) -> _Decision:
    """Take over what GM says of the dataset; another URL or format is another file, all of whose records are new."""
    steps = Steps(state, now, evolve_dataset)
    if message.operation == "delete":
        steps.add(e.GlobalManagerMessageReceived, operation="delete", id=message.id)
        if state.is_live:
            steps.add(e.DatasetDeleted)
        return steps.events, steps.state
    spec, metadata, kind = (message.content.get(part) for part in ("spec", "metadata", "kind"))
    steps.add(
        e.GlobalManagerMessageReceived,
        operation=message.operation,
        id=message.id,
        generation=None if state.is_live else state.generation + 1,
        kind=None if kind == state.kind else kind,
        metadata=None if metadata == state.metadata else metadata,
        spec=None if spec == state.spec else spec,
    )
    if state.mark is None:
        return steps.events, steps.state
    kind = steps.state.kind
    if (steps.state.url, steps.state.format) != (state.url, state.format):
        steps.add(e.DatasetReset, cause="url", epoch=state.epoch + 1, records=0, resource_kind=kind)
    elif not state.is_live and state.records:
        # GM's new object says 0 until it is told what the file holds.
        rows, span = [0, state.records], [0, state.offset]
        steps.add(e.DatasetObserved, records=state.records, rows=rows, bytes=span, mark=state.mark, resource_kind=kind)
    return steps.events, steps.state


def duplicate_dataset_message(state: DatasetState, message_id: str | None, now: str) -> _Decision:
    """Count a repeat; it changes nothing else."""
    steps = Steps(state, now, evolve_dataset)
    steps.add(e.DuplicateReceived, id=message_id)
    return steps.events, steps.state


def confirm_dataset_reports(state: DatasetState, versions: Sequence[int], now: str) -> _Decision:
    """Stop repeating the number of samples that GM says it has."""
    steps = Steps(state, now, evolve_dataset)
    if state.unconfirmed is not None and state.unconfirmed in versions:
        steps.add(e.ReportsConfirmed, versions=[state.unconfirmed])
    return steps.events, steps.state


def observe_dataset(
    state: DatasetState,
    *,
    rows: tuple[int, int],
    span: tuple[int, int],
    mark: JsonObject,
    now: str,
    spooled: tuple[int, int] | None,
) -> _Decision:
    """The file grew by the records `rows`; with none of them, it can be read again after an error."""
    steps = Steps(state, now, evolve_dataset)
    steps.add(
        e.DatasetObserved,
        records=rows[1],
        rows=list(rows),
        bytes=list(span),
        mark=mark,
        spooled=None if spooled is None else list(spooled),
        resource_kind=state.kind,
    )
    return steps.events, steps.state


def reset_dataset(state: DatasetState, *, cause: str, mark: JsonObject | None, now: str) -> _Decision:
    """Counted content changed or is gone: the file starts anew, as the next epoch."""
    steps = Steps(state, now, evolve_dataset)
    steps.add(e.DatasetReset, cause=cause, epoch=state.epoch + 1, records=0, mark=mark, resource_kind=state.kind)
    return steps.events, steps.state


def unreadable_dataset(state: DatasetState, *, code: str, error: str, now: str) -> _Decision:
    """The file cannot be read: recorded at first, when the error changes, and once an hour."""
    steps = Steps(state, now, evolve_dataset)
    problem = state.problem
    if problem is not None and (problem.code, problem.error) == (code, error):
        elapsed = datetime.fromisoformat(now) - datetime.fromisoformat(problem.time)
        if abs(elapsed) < _UNREADABLE_PAUSE:
            return steps.events, steps.state
    steps.add(e.DatasetUnreadable, code=code, error=error)
    return steps.events, steps.state
