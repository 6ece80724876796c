"""Long work beside what must stay prompt: a thread that rests in between, so that it has but a share of the time."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Share"]


class Share:
    """Work between `begin` and `rest`, or two rests, is followed by a rest that keeps it to its `share`, above 0 to 1.

    Time that others took meanwhile counts as work: the busier the machine, the longer the rests.
    """

    def __init__(self, share: float, *, monotonic: Callable[[], float], wait: Callable[[float], object]) -> None:
        self._rest_of_work = 1 / share - 1
        self._monotonic = monotonic
        self._wait = wait
        self._since = monotonic()

    def begin(self) -> None:
        """What follows is work; what was before is not."""
        self._since = self._monotonic()

    def rest(self) -> None:
        """Wait out of the way of others."""
        self._wait((self._monotonic() - self._since) * self._rest_of_work)
        self.begin()
