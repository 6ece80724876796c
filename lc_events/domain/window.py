"""Daily windows by the wall clock of a named zone; the moment is always handed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

__all__ = ["Minutes", "is_open", "next_opening", "show_window"]

Minutes = tuple[int, int]
"""Start and end in minutes since midnight, both inside; an end before the start lies on the next day."""


def is_open(window: Minutes, zone: str, moment: datetime) -> bool:
    """Whether the wall clock of `zone` stands inside the window at `moment` (Sedna: `start <= now <= end`).

    A wall-clock time that a change to summer time skips is never shown, one that it doubles is shown twice.
    """
    local = moment.astimezone(ZoneInfo(zone))
    minute = local.hour * 60 + local.minute
    start, end = window
    return start <= minute <= end if start <= end else minute >= start or minute <= end


def next_opening(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """The next moment (UTC, on a full minute) at which a closed window opens; None if none does within three days."""
    return _next_opening(window, zone, moment.astimezone(UTC).replace(second=0, microsecond=0))


@lru_cache(maxsize=1024)
def _next_opening(window: Minutes, zone: str, minute: datetime) -> datetime | None:
    was_open = is_open(window, zone, minute)
    for _ in range(3 * 24 * 60):
        minute += timedelta(minutes=1)
        if is_open(window, zone, minute):
            if not was_open:
                return minute
        else:
            was_open = False
    return None


def show_window(window: Minutes) -> str:
    """A window as `HH:MM-HH:MM`."""
    return "-".join(f"{minutes // 60:02}:{minutes % 60:02}" for minutes in window)
