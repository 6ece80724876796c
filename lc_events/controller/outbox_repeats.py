"""Reports that the outbox is to send again: each once, however often it is asked for until then."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

__all__ = ["DueRepeats", "Report"]

_ASK_AGAIN = 60.0
_MOST_DUE = 10_000
_MOST_REMEMBERED = 10_000


class Report(NamedTuple):
    """A report, named by the event that caused it."""

    stream: str
    version: int


class DueRepeats:
    """Which reports are due again, in the order in which they became so; the caller's lock guards all of it."""

    def __init__(self) -> None:
        self._due: OrderedDict[Report, None] = OrderedDict()
        self._taken: Report | None = None
        self._reported_at: OrderedDict[Report, float] = OrderedDict()

    def has_any(self) -> bool:
        """Whether a report is due."""
        return bool(self._due)

    def add(self, report: Report) -> None:
        """It is to be sent again; of more than 10,000 the oldest is left out."""
        self._due.setdefault(report, None)
        if len(self._due) > _MOST_DUE:
            self._due.popitem(last=False)

    def ask(self, report: Report, now: float) -> None:
        """GM asks for a report that it had: at most once in 60 s, counted from the last sending."""
        reported_at = self._reported_at.get(report)
        if report != self._taken and (reported_at is None or now - reported_at >= _ASK_AGAIN):
            self.add(report)

    def take(self) -> Report | None:
        """The next one; until `done` it is on its way, and asking for it adds nothing. None if there is none."""
        self._taken = self._due.popitem(last=False)[0] if self._due else None
        return self._taken

    def done(self, *, is_still_due: bool) -> None:
        """The one taken was sent or never can be; if it `is_still_due`, it is the next one again."""
        if is_still_due and self._taken is not None:
            self._due[self._taken] = None
            self._due.move_to_end(self._taken, last=False)
        self._taken = None

    def note_sent(self, report: Report, now: float) -> None:
        """A report has left, for the first time or again; the newest 10,000 are remembered."""
        self._reported_at[report] = now
        self._reported_at.move_to_end(report)
        if len(self._reported_at) > _MOST_REMEMBERED:
            self._reported_at.popitem(last=False)
