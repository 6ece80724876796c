"""A token bucket: so many at once, so many a second."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Rate"]


class Rate:
    """Whether one more may pass: `burst` at once, `per_second` in the long run."""

    def __init__(self, *, per_second: float, burst: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._monotonic = monotonic
        self._tokens = burst
        self._filled = monotonic()

    def allows(self) -> bool:
        """Take a token, if there is one."""
        now = self._monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._per_second)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
