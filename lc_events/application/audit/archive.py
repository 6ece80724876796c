"""A store opened to read: its streams by name, their states and events at any version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, Protocol, TypeVar

from lc_events.application.audit.names import job_stream
from lc_events.application.broken import DEFECTS, BrokenError, misfit
from lc_events.application.journal import Journal
from lc_events.application.recorder import StoredRow
from lc_events.application.snapshots import newest_state
from lc_events.domain.events import Event, Registry
from lc_events.errors import NotFoundError
from lc_events.messages.json import JsonObject
from lc_events.messages.names import JOB_KIND, kind_of

__all__ = ["Archive", "Folded", "Follow", "StoreKind", "do_not_yield"]


class Folded(Protocol):
    """What every state has in common, of whatever store."""

    @property
    def stream(self) -> str:
        """The stream that it is the fold of."""
        ...

    @property
    def version(self) -> int:
        """The version of the last event that was folded."""
        ...

    @property
    def generation(self) -> int:
        """Which life of the name this is, from 1."""
        ...


S = TypeVar("S", bound=Folded)

_PIECE = 100


Follow = Callable[[str, Iterable[Event], list[str]], Iterator[Event]]
"""Stream, events, notes → the events as long as each follows from those before; BrokenError at the first that does not.

What could not be checked is added to the notes.
"""


@dataclass(frozen=True)
class StoreKind(Generic[S]):
    """What the streams of a store are: a local controller's, or a global manager's."""

    registry: Registry
    fold: Callable[[str, Iterable[Event], S | None], S]
    """Stream, events and, if they do not begin with the first, the state before them → the state after them."""
    evolve: Callable[[S, Event], S]
    fresh: Callable[[str], S]
    view: Callable[[S, str], JsonObject]
    """State and node → what `show -o json` prints."""
    follow: Follow
    read_snapshot: Callable[[str, bytes], S] | None = None
    """Stream and stored snapshot → its state; None where none are taken."""


def do_not_yield() -> None:
    """For a reader that is alone in its process, or soon done."""


class Archive(Generic[S]):
    """Pure reading of one store; `node` is whose history it holds."""

    def __init__(self, journal: Journal, kind: StoreKind[S], node: str) -> None:
        self.journal = journal
        self.kind = kind
        self.node = node

    def find(self, job: str) -> str:
        """The stream of `NAMESPACE/NAME`, `NAME` or a whole stream name; NotFoundError if the store has none."""
        stream = job_stream(job)
        if self.journal.head(stream).version == 0:
            raise NotFoundError(f"there is no {stream} in {self.journal.path}; see `lc-events jobs`")
        return stream

    def streams(self, kind: str = JOB_KIND) -> list[str]:
        """All streams of a kind, sorted."""
        return [stream for stream in self.journal.rows.streams() if kind_of(stream) == kind]

    def states(self, kind: str = JOB_KIND) -> Iterator[S | BrokenError]:
        """The newest states of all streams of a kind, in one ordered scan; for one that cannot be read, why."""
        with closing(self.journal.rows.scan()) as scanned:
            for stream, rows in groupby(scanned, key=lambda row: row.stream):
                if kind_of(stream) == kind:
                    try:
                        found: S | BrokenError = self._folded(stream, rows, None)
                    except BrokenError as error:
                        found = error
                    yield found

    def rows(self, stream: str, *, first: int = 1, last: int | None = None) -> list[StoredRow]:
        """The stored rows of versions `first` to `last`, both included."""
        return self.journal.rows.rows(stream=stream, gt=first - 1, lte=last)

    def walk(
        self,
        stream: str,
        *,
        after: int = 0,
        last: int | None = None,
        yield_to_others: Callable[[], None] = do_not_yield,
    ) -> Iterator[StoredRow]:
        """The rows of versions above `after`, up to `last` or to the end, without holding them all.

        `yield_to_others` is called after every 100 of them, for whoever must not stand in the way of others.
        """
        for page in self.journal.rows.pages(stream, gt=after, lte=last):
            for start in range(0, len(page), _PIECE):
                yield from page[start : start + _PIECE]
                yield_to_others()

    def state(self, stream: str, version: int | None = None) -> S:
        """The state at a version, the newest by default; NotFoundError for one that the stream does not have.

        Raises BrokenError at the first event that cannot be read, or does not fit those before it.
        """
        if version is not None:
            self.check_version(stream, version)
        read = self.kind.read_snapshot
        start = None if read is None else newest_state(self.journal, stream, lte=version, read=read)
        rows = self.journal.rows.rows(stream=stream, gt=0 if start is None else start.version, lte=version)
        return self._folded(stream, rows, start)

    def _folded(self, stream: str, rows: Iterable[StoredRow], start: S | None) -> S:
        version = 0

        def events() -> Iterator[Event]:
            nonlocal version
            for row in rows:
                version = row.version
                yield self.journal.decode(row)

        try:
            return self.kind.fold(stream, events(), start)
        except DEFECTS as error:
            raise misfit(stream, version, error) from error

    def check_version(self, stream: str, version: int) -> None:
        """NotFoundError unless the stream has this version."""
        newest = self.journal.head(stream).version
        if not 1 <= version <= newest:
            raise NotFoundError(f"{stream} has no version {version}: its versions are 1 to {newest}")

    def view(self, state: S) -> JsonObject:
        """What others see of a state."""
        return self.kind.view(state, self.node)
