"""Acknowledgements leave in the order of arrival, whatever order the work was finished in."""

from __future__ import annotations

__all__ = ["Acknowledgements"]


class Acknowledgements:
    """The unacknowledged deliveries of one connection (order: MQTT 5, [MQTT-4.6.0-2]).

    Deliveries are numbered by us: packet ids are used again, so a second acknowledgement of a message could confirm
    another one.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[int, bool]] = {}

    def arrived(self, delivery: int, mid: int) -> None:
        """Note a delivery that must be acknowledged with packet id `mid`."""
        self._open[delivery] = (mid, False)

    def done(self, delivery: int) -> list[int]:
        """Return the packet ids to acknowledge now, in order; none if unknown, acknowledged before, or not its turn."""
        if delivery not in self._open:
            return []
        self._open[delivery] = (self._open[delivery][0], True)
        return self._ready()

    def given_up(self, delivery: int) -> list[int]:
        """Leave a delivery unacknowledged, so that it comes again, without holding up those behind it."""
        self._open.pop(delivery, None)
        return self._ready()

    def _ready(self) -> list[int]:
        ready = []
        while self._open:
            first = next(iter(self._open))
            mid, finished = self._open[first]
            if not finished:
                break
            del self._open[first]
            ready.append(mid)
        return ready
