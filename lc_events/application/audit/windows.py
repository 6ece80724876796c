"""Looking back at a daily window: when it closed last, when it closes next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from lc_events.domain.window import Minutes, is_open
from lc_events.domain.window import next_opening as _next_opening

__all__ = ["last_closing", "next_closing", "next_opening"]

_MINUTE = timedelta(minutes=1)
_TWO_DAYS = 2 * 24 * 60


def next_opening(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """When a window that is closed now opens; None if it never does, or after the end of time (a clock of 9999)."""
    try:
        return _next_opening(window, zone, moment)
    except OverflowError:
        return None


def last_closing(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """The last minute, on its beginning, at which a window that is closed now was open; None if none was for two days.

    The end of a window is inside it, so that one until 05:00 closes with the minute of 05:00.
    """
    return _search(moment, -_MINUTE, lambda minute: is_open(window, zone, minute))


def next_closing(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """The last minute of a window that is open now; None if it never closes."""
    closed = _search(moment, _MINUTE, lambda minute: not is_open(window, zone, minute))
    return None if closed is None else closed - _MINUTE


def _search(moment: datetime, step: timedelta, is_found: Callable[[datetime], bool]) -> datetime | None:
    minute = moment.replace(second=0, microsecond=0)
    try:
        for _ in range(_TWO_DAYS):
            if is_found(minute):
                return minute
            minute += step
    except OverflowError:  # the end of time, or its beginning
        pass
    return None
