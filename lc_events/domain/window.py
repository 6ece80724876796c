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
    try:
        local = moment.astimezone(ZoneInfo(zone))
    except OverflowError:  # a time that somebody made up: in this zone it lies before year 1 or after 9999
        return False
    minute = local.hour * 60 + local.minute
    start, end = window
    return start <= minute <= end if start <= end else minute >= start or minute <= end


def next_opening(window: Minutes, zone: str, moment: datetime) -> datetime | None:
    """The next moment (UTC, on a full minute) at which a closed window opens; None if none does within three days."""
    return _next_opening(window, zone, moment.astimezone(UTC).replace(second=0, microsecond=0))


@lru_cache(maxsize=1024)
def _next_opening(window: Minutes, zone: str, minute: datetime) -> datetime | None:
    end = minute + timedelta(days=3)
    was_open = is_open(window, zone, minute)
    while (minute := minute + _until_border(window, zone, minute)) <= end:
        if (now_open := is_open(window, zone, minute)) and not was_open:
            return minute
        was_open = now_open
    return None


def _until_border(window: Minutes, zone: str, minute: datetime) -> timedelta:
    """To the next minute at which the window may open or close; a single minute where the clocks change before it."""
    local = minute.astimezone(ZoneInfo(zone))
    now = local.hour * 60 + local.minute
    start, end = window
    step = timedelta(minutes=min((border - now - 1) % 1440 + 1 for border in (start, end + 1)))
    is_steady = (minute + step).astimezone(ZoneInfo(zone)).utcoffset() == local.utcoffset()
    return step if is_steady else timedelta(minutes=1)


def show_window(window: Minutes) -> str:
    """A window as `HH:MM-HH:MM`."""
    return "-".join(f"{minutes // 60:02}:{minutes % 60:02}" for minutes in window)
