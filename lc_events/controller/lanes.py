"""Threads for what may take long, apart for each place it goes to: one that hangs holds up only its own."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

__all__ = ["LOCAL", "REMOTE_THREADS", "Lanes"]

_log = logging.getLogger("lc_events")

LOCAL = "local"
"""The lane of this machine's own disks, whose work is bound by the processor."""

_LOCAL_THREADS = 4
REMOTE_THREADS = 16
"""They wait for a server nearly all of their time."""

_IDLE_SECONDS = 30.0


class Lanes:
    """Runs tasks in the order they came, a few of each lane at a time; any thread may submit.

    The threads end with the process: a request that hangs does not keep it from stopping, and whatever a task had
    begun is begun again after the next start.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._tasks: dict[str, deque[Callable[[], None]]] = {}
        self._threads: dict[str, int] = {}
        self._idle: dict[str, int] = {}
        self._stopping = False

    def submit(self, lane: str, task: Callable[[], None]) -> None:
        """Run a task soon; none any more once stopping."""
        with self._changed:
            if self._stopping:
                return
            tasks = self._tasks.setdefault(lane, deque())
            tasks.append(task)
            threads = self._threads.get(lane, 0)
            if len(tasks) > self._idle.get(lane, 0) and threads < (_LOCAL_THREADS if lane == LOCAL else REMOTE_THREADS):
                self._threads[lane] = threads + 1
                threading.Thread(target=self._run, args=(lane,), name=f"{self._name} {lane}", daemon=True).start()
            self._changed.notify_all()

    def stop(self, timeout: float) -> None:
        """Begin nothing more, and wait for what has begun, up to `timeout` seconds."""
        with self._changed:
            self._stopping = True
            self._tasks.clear()
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: not any(self._threads.values()), timeout):
                busy = ", ".join(sorted(lane for lane, threads in self._threads.items() if threads))
                _log.warning("not waited for any longer, to be done after the next start: %s at %s", self._name, busy)

    def _run(self, lane: str) -> None:
        while (task := self._next(lane)) is not None:
            try:
                task()
            except Exception:  # noqa: BLE001 - the thread outlives any defect of a task
                _log.exception("%s at %s", self._name, lane)

    def _next(self, lane: str) -> Callable[[], None] | None:
        """The next task; None after a while without one: then the thread ends."""
        with self._changed:
            self._idle[lane] = self._idle.get(lane, 0) + 1
            until = time.monotonic() + _IDLE_SECONDS
            while not (tasks := self._tasks.get(lane)):
                left = until - time.monotonic()
                if self._stopping or left <= 0:
                    self._idle[lane] -= 1
                    self._threads[lane] -= 1
                    self._changed.notify_all()
                    return None
                self._changed.wait(left)
            self._idle[lane] -= 1
            return tasks.popleft()
