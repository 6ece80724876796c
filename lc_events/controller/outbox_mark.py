"""How far the broker itself has the log: the outbox's position, retained there, read back before each connection."""

from __future__ import annotations

from collections.abc import Mapping

from lc_events.domain.stamp import stamp
from lc_events.errors import RefusedError
from lc_events.messages.json import dumps, loads_object
from lc_events.mqtt.packets import Publication
from lc_events.runtime.clock import Clock

__all__ = ["OutboxMark"]

_PAUSE = 1.0
_WITHOUT_A_MARK = 10_000


class OutboxMark:
    """A broker that is killed comes back as it was saved last, without what it acknowledged since.

    What it lost, it lost together with the mark of that time: the older mark that it has now says where to begin. One
    without a mark forgot everything, or is new: then the newest 10,000 events are published again.
    """

    def __init__(self, topic: str, clock: Clock) -> None:
        self.topic = topic
        self._clock = clock
        self._found: bytes | None = None
        self._published: int | None = None
        self._next = float("-inf")
        self._is_refused = False

    def read(self, retained: Mapping[str, bytes]) -> None:
        """Take note of what the broker retains, by topic, for the connection that follows."""
        self._found = retained.get(self.topic, b"")

    def begin(self, position: int) -> int:
        """From which position to publish on a new connection; the given one where the broker could not be asked."""
        found, self._found = self._found, None
        self._published = None if found is None else _position(found)
        if found is None or self._is_refused:
            return position
        return min(position, max(0, position - _WITHOUT_A_MARK) if self._published is None else self._published)

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

    def give_up(self) -> None:
        """The broker does not let us leave a mark, so none says anything."""
        self._is_refused = True


def _position(payload: bytes) -> int | None:
    try:
        position = loads_object(payload).get("position")
    except RefusedError:
        return None
    return position if isinstance(position, int) and not isinstance(position, bool) and position >= 0 else None
