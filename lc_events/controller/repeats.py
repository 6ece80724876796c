"""Reports that GM has not confirmed are sent again: after each connection, and with growing pauses."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from lc_events.controller.committer import Committer
from lc_events.controller.world import State, World
from lc_events.domain.job import JobState
from lc_events.runtime.clock import Clock

__all__ = ["Repeats"]

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0
_AFTER_DELETE = timedelta(minutes=10)


class _Waiting(NamedTuple):
    """A report that is sent again unless it was confirmed; `pause` is the one that ends then."""

    stream: str
    version: int
    pause: float


class Repeats:
    """Which reports are due again in which second; on the committer's thread.

    Each has pauses of its own: a report that has just gone out is not sent again because an older one of its job
    waits, and one that is new does not have to wait for the end of a long pause of those.
    """

    def __init__(
        self, committer: Committer, world: World, clock: Clock, repeat: Callable[[str, Iterable[int]], None]
    ) -> None:
        self._committer = committer
        self._world = world
        self._clock = clock
        self._repeat = repeat
        self._seen: dict[str, int] = {}
        self._due: defaultdict[int, list[_Waiting]] = defaultdict(list)

    def consider(self, states: Iterable[State]) -> None:
        """Take note of reports that went out with the last commit."""
        for state in states:
            if new := _newer(state, self._seen.get(state.stream, 0)):
                self._seen[state.stream] = new[-1]
                self._wait(_Waiting(state.stream, version, _FIRST_PAUSE) for version in new)

    def connected(self) -> None:
        """A new connection: all that is unconfirmed is due, and the pauses begin anew. Any thread."""
        self._committer.later(0.0, self._repeat_all)

    def _repeat_all(self) -> None:
        self._due.clear()
        for stream in self._world.streams():
            if versions := self._open(stream):
                self._repeat(stream, versions)
                self._wait(_Waiting(stream, version, _FIRST_PAUSE) for version in versions)

    def _wait(self, reports: Iterable[_Waiting]) -> None:
        now = self._clock.monotonic()
        for report in reports:
            second = math.ceil(now + report.pause)
            if second not in self._due:
                self._committer.later(second - now, lambda second=second: self._second_ended(second))  # type: ignore[misc]
            self._due[second].append(report)

    def _second_ended(self, second: int) -> None:
        of_stream: defaultdict[str, list[_Waiting]] = defaultdict(list)
        for report in self._due.pop(second, ()):
            of_stream[report.stream].append(report)
        for stream, reports in of_stream.items():
            again = [report for report in reports if self._is_open(stream, report.version)]
            if again:
                self._repeat(stream, [report.version for report in again])
                self._wait(report._replace(pause=min(report.pause * 2, _LONGEST_PAUSE)) for report in again)

    def _open(self, stream: str) -> list[int]:
        state = self._repeated(stream)
        return [] if state is None else list(_newest_first(state))[::-1]

    def _is_open(self, stream: str, version: int) -> bool:
        state = self._repeated(stream)
        if isinstance(state, JobState):
            return state.unconfirmed.holds(version)
        return state is not None and version in _newest_first(state)

    def _repeated(self, stream: str) -> State | None:
        """A resource whose reports are repeated: those of a deleted job for ten minutes."""
        state = self._world.get(stream)
        if isinstance(state, JobState) and state.deleted_at is not None:
            gone = self._clock.now() - datetime.fromisoformat(state.deleted_at)
            if gone > _AFTER_DELETE:
                return None
        return state


def _newest_first(state: State) -> Iterator[int]:
    """The versions whose reports are unconfirmed; there may be very many of them."""
    if isinstance(state, JobState):
        yield from (report.version for report in reversed(state.unconfirmed))
    elif state.unconfirmed is not None and state.is_live:
        yield state.unconfirmed


def _newer(state: State, version: int) -> list[int]:
    """What is unconfirmed above a version, without looking at all that lies below."""
    return [*takewhile(lambda each: each > version, _newest_first(state))][::-1]
