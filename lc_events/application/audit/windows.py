"""Looking back at a daily window: when it closed last, when it closes next."""

from __future__ import annotations

from datetime import datetime, timedelta

from lc_events.domain.window import Minutes, is_open

__all__ = ["last_closing", "next_closing"]

_MINUTE = timedelta(minutes=1)
_TWO_DAYS = 2 * 24 * 60


def last_closing(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """The last minute, on its beginning, at which a window that is closed now was open; None if none was for two days.

    The end of a window is inside it, so that one until 05:00 closes with the minute of 05:00.
    """
    minute = _begun(moment)
    for _ in range(_TWO_DAYS):
        if is_open(window, zone, minute):
            return minute
        minute -= _MINUTE
    return None


def next_closing(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """The last minute of a window that is open now; None if it never closes."""
    minute = _begun(moment)
    for _ in range(_TWO_DAYS):
        if not is_open(window, zone, minute + _MINUTE):
            return minute
        minute += _MINUTE
    return None


def _begun(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
