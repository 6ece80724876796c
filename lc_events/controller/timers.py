"""Things to do later, on the committer's thread: no timer thread, so nothing races with a commit."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

__all__ = ["Timers"]


class Timers:
    """Callbacks by the monotonic second at which they are due; any thread may add one."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()

    def at(self, due: float, callback: Callable[[], None]) -> None:
        """Call `callback` once, when the monotonic clock has reached `due`."""
        with self._lock:
            heapq.heappush(self._heap, (due, next(self._order), callback))

    def next_due(self) -> float | None:
        """When the next callback is due."""
        with self._lock:
            return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> list[Callable[[], None]]:
        """Take out the callbacks that are due by `now`, the oldest first."""
        due = []
        with self._lock:
            while self._heap and self._heap[0][0] <= now:
                due.append(heapq.heappop(self._heap)[2])
        return due
