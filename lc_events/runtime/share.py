"""Long work beside what must stay prompt: a thread that pauses in between, so that it has but a share of the time."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Share"]


class Share:
    """Each piece of work is followed by a pause that keeps all of them to a `share` of the time, above 0 to 1.

    A piece is what lies between `begin` and `yield_to_others`, or between two of these. Time that others took meanwhile
    counts as work: the busier the machine, the longer the pauses.
    """

    def __init__(self, share: float, *, monotonic: Callable[[], float], wait: Callable[[float], object]) -> None:
        self._pause_per_work = 1 / share - 1
        self._monotonic = monotonic
        self._wait = wait
        self._since = monotonic()

    def begin(self) -> None:
        """What follows is work; what was before is not."""
        self._since = self._monotonic()

    def yield_to_others(self) -> None:
        """Pause after a piece of work."""
        self._wait((self._monotonic() - self._since) * self._pause_per_work)
        self.begin()
