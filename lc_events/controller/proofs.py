"""Answers that take long: on a thread of their own, one at a time, a quarter of the time, shared by those who wait."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeAlias

from lc_events.errors import LcError, RefusedError
from lc_events.messages.json import JsonObject
from lc_events.runtime.share import Share

__all__ = ["Outcome", "Proofs", "Reply", "Work", "Yield"]

_log = logging.getLogger("lc_events.asking")

_WAITING = 100
_SHARE = 0.25

Outcome: TypeAlias = "JsonObject | LcError"
Yield = Callable[[], None]
"""To be called between two pieces of work; RefusedError `ending` once the work is to be given up."""
Work = Callable[[Yield], Outcome]
"""Must not raise."""
Reply = Callable[[Outcome], None]


class Proofs:
    """Whoever asks for what others already wait for gets the same outcome, if the work for it has not begun yet.

    So each outcome is of the store as it was after the question, whatever is done to it before; and who asks ever
    again has no more done than one piece of work after another.
    """

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._waiting: OrderedDict[Hashable, tuple[Work, list[Reply]]] = OrderedDict()
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._share = Share(_SHARE, monotonic=monotonic, wait=self._stopped.wait)
        self._thread = threading.Thread(target=self._run, name="proofs", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Give up what is being done."""
        self._stopped.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(5)

    def ask(self, key: Hashable, work: Work, reply: Reply) -> None:
        """Have `reply` called with the outcome, on this thread; RefusedError `rate` if too many wait already."""
        with self._changed:
            if sum(len(replies) for _, replies in self._waiting.values()) >= _WAITING:
                raise RefusedError(f"{_WAITING} such requests wait already: ask again later", code="rate")
            self._waiting.setdefault(key, (work, []))[1].append(reply)
            self._changed.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            work, replies = task
            self._share.begin()
            outcome = work(self._yield_to_others)
            for reply in replies:
                try:
                    reply(outcome)
                except Exception:  # noqa: BLE001 - one asker must not end the others' answers
                    _log.exception("an answer could not be given")
            self._share.yield_to_others()

    def _next(self) -> tuple[Work, list[Reply]] | None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._stopped.is_set())
            return None if self._stopped.is_set() else self._waiting.popitem(last=False)[1]

    def _yield_to_others(self) -> None:
        self._share.yield_to_others()
        if self._stopped.is_set():
            raise RefusedError("the local controller is ending: ask again later", code="ending")
