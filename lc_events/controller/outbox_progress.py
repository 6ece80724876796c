"""How far the outbox has come: what was sent of the log, and what of that the broker has confirmed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

__all__ = ["Progress"]


class Progress:
    """The position stands behind the last notification that was sent and confirmed with all before it.

    Reports may be sent, and confirmed, long before the event that they belong to.
    """

    def __init__(self, position: int) -> None:
        self.position = self.newest = position
        """`newest` is the highest position that there was: it does not go back with a broker that lost something."""
        self._unconfirmed: Counter[int] = Counter()
        self._events: deque[int] = deque()
        """Events that were sent or left out, and are ahead of the position."""

    def begin(self, position: int) -> None:
        """Begin at a position, with nothing on its way."""
        self.position = position
        self._unconfirmed.clear()
        self._events.clear()

    def note_urgent(self, notification_ids: Iterable[int]) -> None:
        """A report or `done` is on its way for each of these."""
        self._unconfirmed.update(notification_ids)

    def note_event(self, notification_id: int, *, is_left_out: bool) -> bool:
        """An event is on its way, or left out; whether there is a newest position."""
        if not is_left_out:
            self._unconfirmed[notification_id] += 1
        self._events.append(notification_id)
        return self._advance()

    def note_confirmed(self, notification_id: int) -> bool:
        """One publication is confirmed; whether there is a newest position."""
        self._unconfirmed[notification_id] -= 1
        if not self._unconfirmed[notification_id]:
            del self._unconfirmed[notification_id]
        return self._advance()

    def _advance(self) -> bool:
        while self._events and self._events[0] not in self._unconfirmed:
            self.position = self._events.popleft()
        is_newest = self.position > self.newest
        self.newest = max(self.newest, self.position)
        return is_newest
