"""How far the broker itself has the log: the outbox's position, retained there, read back on each connection."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lc_events.domain.stamp import stamp
from lc_events.errors import BrokerError, RefusedError
from lc_events.messages.json import dumps, loads_object
from lc_events.mqtt.oneshot import WITHHELD
from lc_events.mqtt.packets import Publication
from lc_events.runtime.clock import Clock

__all__ = ["OutboxMark"]

_log = logging.getLogger("lc_events.outbox")

_PAUSE = 1.0
_WITHOUT_A_MARK = 10_000
_FOR_GOOD = (0x87, 0x90, 0x9A)
"""Reason codes that a later mark would get too: not authorized, topic name invalid, retain not supported."""


class OutboxMark:
    """A broker that is killed comes back as it was saved last, without what it acknowledged since.

    What it lost, it lost together with the mark of that time: the older mark that it has now says where to begin. One
    without a mark forgot everything, or is new: then the newest 10,000 events are published again.
    """

    def __init__(self, topic: str, clock: Clock, look: Callable[[str], bytes | None] | None = None) -> None:
        """`look` says what the broker retains on a topic; None where nothing outlives a broker.

        It raises BrokerError, or UsageError where a TLS file cannot be read.
        """
        self.topic = topic
        self._clock = clock
        self._look = look
        self._published: int | None = None
        self._next = float("-inf")
        self._is_refused = False
        self._said: str | None = None
        """Why the last look was in vain: it is said once, not with each look."""

    def begin(self, position: int, *, end: int) -> int:
        """From which position to send events on a new connection, where `end` is the last of the log; waits for a look.

        BrokerError if the broker did not answer, UsageError of a TLS file. A broker that does not let us look or leave
        a mark has what it confirmed.
        """
        self._published = None
        if self._look is None or self._is_refused:
            return position
        try:
            self._published = _position(self._look(self.topic) or b"", end)
        except BrokerError as error:
            if error.code not in WITHHELD:
                self._warn(f"the broker cannot be asked how far it has the log: {error}")
                raise
            self._warn(f"events that this broker loses stay lost, for {self.topic} is withheld: {error}")
            return position
        self._said = None
        if self._published is None:
            return max(0, position - _WITHOUT_A_MARK)
        return min(position, self._published)

    def _warn(self, words: str) -> None:
        if words != self._said:
            _log.warning("%s", words)
        self._said = words

    def due_in(self, position: int, now: float) -> float | None:
        """Seconds until the mark of a position is to be published, at most once a second; None if it is there."""
        is_there = position == self._published or self._is_refused
        return None if is_there else max(0.0, self._next - now)

    def take_due(self, position: int, now: float) -> Publication | None:
        """The mark of a position, all before which the broker confirmed; None if it is not due."""
        if self.due_in(position, now) != 0:
            return None
        self._published = position
        self._next = self._clock.monotonic() + _PAUSE
        value = {"position": position, "time": stamp(self._clock.now())}
        return Publication(self.topic, dumps(value), retain=True)

    def refused(self, reason: int) -> None:
        """The broker did not take a mark; if it never will, an older one says nothing."""
        self._is_refused = self._is_refused or reason in _FOR_GOOD


def _position(payload: bytes, end: int) -> int | None:
    """What a mark says; None if it cannot be of this log."""
    try:
        position = loads_object(payload).get("position")
    except RefusedError:
        return None
    if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position <= end:
        return None
    return position
