"""Reports that GM has not confirmed are sent again: after each connection, and with growing pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from lc_events.controller.committer import Committer
from lc_events.controller.world import State, World
from lc_events.domain.job import JobState
from lc_events.runtime.clock import Clock

__all__ = ["Repeats"]

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0
_AFTER_DELETE = timedelta(minutes=10)


class Repeats:
    """Which streams have unconfirmed reports, and when they are due again; on the committer's thread."""

    def __init__(
        self, committer: Committer, world: World, clock: Clock, repeat: Callable[[str, Iterable[int]], None]
    ) -> None:
        self._committer = committer
        self._world = world
        self._clock = clock
        self._repeat = repeat
        self._rounds: dict[str, int] = {}

    def consider(self, states: Iterable[State]) -> None:
        """Take note of streams that have something unconfirmed now."""
        for state in states:
            if state.stream not in self._rounds and _unconfirmed(state):
                self._begin(state.stream)

    def connected(self) -> None:
        """A new connection: all that is unconfirmed is due, and the pauses begin anew. Any thread."""
        self._committer.later(0.0, self._repeat_all)

    def _repeat_all(self) -> None:
        for stream in self._world.streams():
            state = self._world.get(stream)
            if state is not None and (versions := self._versions(state)):
                self._repeat(stream, versions)
                self._begin(stream)

    def _begin(self, stream: str) -> None:
        round_ = self._rounds[stream] = self._rounds.get(stream, 0) + 1
        self._wait(stream, round_, _FIRST_PAUSE)

    def _wait(self, stream: str, round_: int, pause: float) -> None:
        self._committer.later(pause, lambda: self._due(stream, round_, pause))

    def _due(self, stream: str, round_: int, pause: float) -> None:
        if self._rounds.get(stream) != round_:
            return
        state = self._world.get(stream)
        versions = [] if state is None else self._versions(state)
        if not versions:
            del self._rounds[stream]
            return
        self._repeat(stream, versions)
        self._wait(stream, round_, min(pause * 2, _LONGEST_PAUSE))

    def _versions(self, state: State) -> list[int]:
        if isinstance(state, JobState) and state.deleted_at is not None:
            gone = self._clock.now() - datetime.fromisoformat(state.deleted_at)
            if gone > _AFTER_DELETE:
                return []
        return _unconfirmed(state)


def _unconfirmed(state: State) -> list[int]:
    if isinstance(state, JobState):
        return [unconfirmed.version for unconfirmed in state.unconfirmed]
    return [] if state.unconfirmed is None or not state.is_live else [state.unconfirmed]
