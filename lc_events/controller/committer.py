"""The one writer: takes whatever work waits, decides it, saves it in one commit, then acknowledges it."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from lc_events.application.journal import STORE_ERRORS, Journal
from lc_events.controller.timers import Timers
from lc_events.controller.transaction import Batch, Transaction, Work
from lc_events.controller.world import State, World
from lc_events.domain.events import Event
from lc_events.errors import IntegrityError, StoreError
from lc_events.faults import reach
from lc_events.runtime.clock import Clock

__all__ = ["Committer"]

T = TypeVar("T")

_log = logging.getLogger("lc_events.committer")

_BATCH = 500
_ROOM = 2000
_LONGEST_SLEEP = 5.0
_POSITION_PAUSE = 0.2
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Committer:
    """A thread and its queue. Group commit without a timer: a batch is what came while the last one was saved.

    After a failed save nothing has happened: no state was replaced, no message acknowledged; it is tried again, with
    pauses, until it works. `problem` says so meanwhile.
    """

    def __init__(self, journal: Journal, world: World, clock: Clock, timers: Timers) -> None:
        self.problem: str | None = None
        self._journal = journal
        self._world = world
        self._clock = clock
        self._timers = timers
        self._queue: deque[Work] = deque()
        lock = threading.RLock()
        self._wake = threading.Condition(lock)
        self._room = threading.Condition(lock)
        self._stopping = False
        self._positions: dict[str, int] = {}
        self._is_flush_planned = False
        self._listeners: list[Callable[[Iterable[State]], None]] = []
        self._readers: list[Callable[[Sequence[Event]], None]] = []
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)

    def listen(self, listener: Callable[[Iterable[State]], None]) -> None:
        """Be told, on the committer's thread, which states each commit changed."""
        self._listeners.append(listener)

    def read_along(self, reader: Callable[[Sequence[Event]], None]) -> None:
        """Be told, on the committer's thread, which events each commit saved."""
        self._readers.append(reader)

    def submit(self, work: Work) -> None:
        """Queue work; any thread may."""
        with self._wake:
            self._queue.append(work)
            self._wake.notify()

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back on the committer's thread after a while; any thread may ask for it."""
        with self._wake:
            self._timers.at(self._clock.monotonic() + seconds, callback)
            self._wake.notify()

    def note_position(self, name: str, notification_id: int) -> None:
        """Save with the next commit, or within 200 ms, how far a reader of the log has gone."""
        with self._wake:
            self._positions[name] = notification_id
            if not self._is_flush_planned:
                self._is_flush_planned = True
                self.later(_POSITION_PAUSE, self._flush_positions)

    def wait_for_room(self) -> None:
        """Wait until the queue is short enough for one more message: a store that fails must not fill the memory."""
        with self._room:
            self._room.wait_for(lambda: len(self._queue) < _ROOM or self._stopping)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Finish what is queued and what was noted, then end; a store that cannot be written is not waited for."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
            self._room.notify_all()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            work = self._next()
            if work is None:
                return
            try:
                self._commit(work)
            except STORE_ERRORS as error:
                _log.error("stopped with %d pieces of work unsaved: %s", len(work), error)
            except Exception:  # noqa: BLE001 - a defect in one piece of work must not stop the others
                _log.exception("a batch of %d could not be saved", len(work))
                self._commit_one_by_one(work)

    def _next(self) -> list[Work] | None:
        """The next batch; timers run in between. None once stopped and empty."""
        while True:
            for callback in self._timers.take_due(self._clock.monotonic()):
                _guarded(callback)
            with self._wake:
                if self._queue:
                    work = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
                    self._room.notify_all()
                    return work
                if self._stopping:
                    break
                due = self._timers.next_due()
                pause = _LONGEST_SLEEP if due is None else due - self._clock.monotonic()
                if pause > 0:
                    self._wake.wait(min(pause, _LONGEST_SLEEP))
        self._flush_positions()
        return None

    def _flush_positions(self) -> None:
        self._is_flush_planned = False
        positions = self._take_positions()
        if not positions:
            return
        try:
            self._journal.record([], positions=positions)
        except StoreError as error:
            _log.warning("%s; a position behind the truth only repeats reports", error)
            self._give_back(positions)
        else:
            reach("position-saved")

    def _give_back(self, positions: dict[str, int]) -> None:
        with self._wake:
            self._positions = {**positions, **self._positions}

    def _take_positions(self) -> dict[str, int]:
        with self._wake:
            positions, self._positions = self._positions, {}
        return positions

    def _commit(self, work: list[Work]) -> None:
        batch = self._decide(work)
        reach("events-decided")
        if batch.events or batch.known:
            self._save(batch)
        reach("events-committed")
        self._world.replace(batch.states)
        for callback in batch.after:
            _guarded(callback)
        for reader in self._readers:
            _guarded(lambda reader=reader: reader(batch.events))  # type: ignore[misc]
        if batch.states:
            for listener in self._listeners:
                _guarded(lambda listener=listener: listener(batch.states.values()))  # type: ignore[misc]

    def _commit_one_by_one(self, work: list[Work]) -> None:
        for each in work:
            try:
                self._commit([each])
            except Exception as error:  # noqa: BLE001 - as in `_run`
                _log.error("work could not be saved: %r", error)
                _guarded(lambda each=each, error=error: each.failed(error))  # type: ignore[misc]

    def _decide(self, work: list[Work]) -> Batch:
        batch = Batch(self._world)
        pairs = [pair for each in work for pair in each.announced()]
        if pairs:
            batch.known_keys = self._patiently(lambda: self._journal.rows.known_keys(pairs))
        for each in work:
            try:
                transaction = self._patiently(lambda each=each: _carried_out(each, batch))  # type: ignore[misc]
            except STORE_ERRORS:
                raise
            except Exception as error:  # noqa: BLE001 - a defect in one decision must not stop the others
                _log.exception("work could not be decided")
                _guarded(lambda each=each, error=error: each.failed(error))  # type: ignore[misc]
            else:
                batch.take(transaction)
        return batch

    def _save(self, batch: Batch) -> None:
        positions = self._take_positions()
        try:
            self._patiently(lambda: self._journal.record(batch.events, known=batch.known, positions=positions))
        except StoreError:
            self._give_back(positions)
            raise
        except IntegrityError:
            self._give_back(positions)
            self._world.rebuild(self._journal, batch.states)
            raise

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Try until the store answers; StoreError only once we are stopping."""
        for pause in itertools.chain(_PAUSES, itertools.repeat(_PAUSES[-1])):
            try:
                result = attempt()
            except STORE_ERRORS as error:
                if self._stopping:
                    raise
                if self.problem is None:
                    _log.error("%s; nothing is acknowledged until it works again", error)
                self.problem = str(error)
                with self._wake:
                    self._wake.wait_for(lambda: self._stopping, pause)
            else:
                if self.problem is not None:
                    _log.warning("the store works again")
                self.problem = None
                return result
        raise AssertionError("endless")  # pragma: no cover


def _carried_out(work: Work, batch: Batch) -> Transaction:
    transaction = Transaction(batch)
    work.carry_out(transaction)
    return transaction


def _guarded(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:  # noqa: BLE001 - the writer must outlive any defect
        _log.exception("a callback failed")
