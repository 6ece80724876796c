"""What went up and is not confirmed: however much that becomes, one more or one less costs little."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

__all__ = ["Backlog", "Unconfirmed"]

_CHUNK = 256


class Unconfirmed(NamedTuple):
    """What went up and is not known to be on GM's disk; `rank` is how far a condition must be to prove it."""

    version: int
    stage: str
    rank: int
    is_result: bool
    time: str


class Backlog:
    """Reports in the order of their versions, as a value: whoever changes it gets another one.

    They lie in chunks, of which a change copies one: as one tuple, a hundred thousand that nobody confirms would be
    copied with each that comes.
    """

    __slots__ = ("_chunks",)

    def __init__(self, reports: Iterable[Unconfirmed] = ()) -> None:
        reports = tuple(reports)
        self._chunks = tuple(reports[at : at + _CHUNK] for at in range(0, len(reports), _CHUNK))

    def __iter__(self) -> Iterator[Unconfirmed]:
        return chain.from_iterable(self._chunks)

    def __reversed__(self) -> Iterator[Unconfirmed]:
        return chain.from_iterable(map(reversed, reversed(self._chunks)))

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backlog) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Backlog({list(self)!r})"

    def holds(self, version: int) -> bool:
        """Whether the report that this version caused is among them."""
        chunk = self._chunk_of(version)
        return chunk >= 0 and any(report.version == version for report in self._chunks[chunk])

    def added(self, report: Unconfirmed) -> Backlog:
        """These and a newer one."""
        if self._chunks and len(self._chunks[-1]) < _CHUNK:
            return self._of((*self._chunks[:-1], (*self._chunks[-1], report)))
        return self._of((*self._chunks, (report,)))

    def without(self, versions: Iterable[int]) -> Backlog:
        """These but for the reports that some versions caused."""
        gone = set(versions)
        chunks = list(self._chunks)
        for chunk in sorted({self._chunk_of(version) for version in gone}):
            if chunk >= 0:
                chunks[chunk] = tuple(report for report in chunks[chunk] if report.version not in gone)
        return self._of(tuple(chunk for chunk in chunks if chunk))

    def only(self, accepts: Callable[[Unconfirmed], bool]) -> Backlog:
        """Those that are accepted; looks at all of them."""
        return Backlog(report for report in self if accepts(report))

    def _chunk_of(self, version: int) -> int:
        """Which chunk holds a version, if any does; -1 before the first."""
        return bisect_right(self._chunks, version, key=lambda chunk: chunk[0].version) - 1

    @staticmethod
    def _of(chunks: tuple[tuple[Unconfirmed, ...], ...]) -> Backlog:
        backlog = Backlog()
        backlog._chunks = chunks
        return backlog
