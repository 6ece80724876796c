"""Times as people type them: RFC 3339, `2h` ago, `yesterday 03:00` (docs/reference/reading.md)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lc_events.errors import UsageError

__all__ = ["read_duration", "read_time", "show_time"]

_DATE = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_RFC_3339 = re.compile(rf"({_DATE})(?:[T ]({_CLOCK})(Z|[+-]\d{{2}}:\d{{2}})?)?", re.IGNORECASE | re.ASCII)
_DAY = re.compile(rf"(today|yesterday)(?: ({_CLOCK}))?", re.ASCII)
_ONLY_CLOCK = re.compile(_CLOCK, re.ASCII)
_PART = r"(\d{1,9})(w|d|h|m|s)"
_DURATION = re.compile(rf"(?:{_PART})+", re.ASCII)
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def read_time(text: str, *, now: datetime, zone: str) -> datetime:
    """The moment that `text` names, in UTC; where it names no offset, it is wall clock in `zone`.

    Accepts RFC 3339 (`2026-05-09T03:00:00Z`, also without offset, seconds or time of day), a duration before `now`
    (`2h`, `1h30m`, `3d`), `now`, `today`, `yesterday`, each with or without `HH:MM`, and `HH:MM` alone: the last time
    that the clock showed it. Raises UsageError for anything else.
    """
    try:
        return _read(text.strip(), now.astimezone(ZoneInfo(zone))).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a time: give RFC 3339 as 2026-05-09T03:00:00Z, 2h (ago), 03:00, yesterday 03:00 or now"
        ) from None


def _read(text: str, now: datetime) -> datetime:
    if text == "now":
        return now
    if _DURATION.fullmatch(text):
        return now.astimezone(UTC) - read_duration(text)
    if match := _RFC_3339.fullmatch(text):
        date, clock, offset = match.groups()
        moment = datetime.fromisoformat(f"{date}T{clock or '00:00'}{(offset or '').upper()}")
        return moment if offset else moment.replace(tzinfo=now.tzinfo)
    if match := _DAY.fullmatch(text):
        day = now.date() - timedelta(days=match[1] == "yesterday")
        return datetime.fromisoformat(f"{day}T{match[2] or '00:00'}").replace(tzinfo=now.tzinfo)
    if _ONLY_CLOCK.fullmatch(text):
        today = datetime.fromisoformat(f"{now.date()}T{text}").replace(tzinfo=now.tzinfo)
        return today if today <= now else today - timedelta(days=1)
    raise ValueError


def read_duration(text: str) -> timedelta:
    """`90s`, `10m`, `1h30m`, `2d`, `1w`; UsageError for anything else."""
    if not _DURATION.fullmatch(text):
        raise UsageError(f"{text!r} is not a duration: give one as 90s, 10m, 1h30m, 2d or 1w")
    return sum((timedelta(**{_UNITS[u]: int(n)}) for n, u in re.findall(_PART, text)), timedelta())


def show_time(time: str, zone: str) -> str:
    """An event's time by the wall clock of `zone`, to the millisecond; text that is not a time is shown as it is."""
    try:
        local = datetime.fromisoformat(time).astimezone(ZoneInfo(zone))
    except (ValueError, OverflowError):
        return time
    return local.isoformat(" ", "milliseconds")[:23]
