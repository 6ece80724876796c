"""How sentences name times, durations, numbers and failed programs; wall clock in the zone of the job's windows."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lc_events.domain.trigger import Trigger, show_threshold
from lc_events.domain.views import show_samples
from lc_events.messages.json import JsonObject
from lc_events.messages.worker import failure_words

__all__ = ["clock", "day", "failure", "length", "local", "pending", "progress"]

_MOST_TEXT = 200
"""Of text that others wrote."""
_AT_LEAST = "at least"
_ASKED = {
    **dict.fromkeys(("gt", ">"), "more than"),
    **dict.fromkeys(("ge", ">="), _AT_LEAST),
    **dict.fromkeys(("eq", "=", "=="), "exactly"),
    **dict.fromkeys(("ne", "!="), "any number but"),
    **dict.fromkeys(("le", "<="), "at most"),
    **dict.fromkeys(("lt", "<"), "fewer than"),
}


def clock(time: datetime, moment: datetime, zone: str) -> str:
    """`at 03:20`, `at 03:20 yesterday` or `at 03:20 on 2026-05-09`, as seen at `moment`."""
    then = local(time, zone)
    return f"at {then:%H:%M}{_date(then, local(moment, zone))}"


def local(time: datetime, zone: str) -> datetime:
    """A moment by the wall clock of a zone; a clock at the end of time stays where it is."""
    try:
        return time.astimezone(ZoneInfo(zone))
    except OverflowError:
        return time


def _date(then: datetime, now: datetime) -> str:
    if then.date() == now.date():
        return ""
    return " yesterday" if then.date() == now.date() - timedelta(days=1) else f" on {then:%Y-%m-%d}"


def day(time: datetime, moment: datetime, zone: str) -> str:
    """`last night`, `today`, `yesterday` or a date, for what ended at `time`."""
    then, now = local(time, zone), local(moment, zone)
    if then.date() == now.date():
        return "last night" if then.hour < 9 else "today"
    return _date(then, now).strip()


def length(duration: timedelta) -> str:
    """`40 s`, `12 min`, `3 h 20 min`, `2 days`."""
    seconds = max(0, round(duration.total_seconds()))
    minutes, hours = seconds // 60, seconds // 3600
    if seconds < 120:
        return f"{seconds} s"
    if minutes < 120:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{hours // 24} days"


def progress(trigger: Trigger, value: int) -> str:
    """How far samples are from what a trigger asks for: `412 of 500 samples`, `2 samples, more than 3 needed`."""
    if trigger.operator is None:
        return show_samples(value)
    words, threshold = _ASKED.get(trigger.operator, trigger.operator), show_threshold(trigger.threshold)
    return (
        f"{value} of {threshold} samples"
        if words == _AT_LEAST
        else f"{show_samples(value)}, {words} {threshold} needed"
    )


def pending(trigger: Trigger, value: int) -> str:
    """The same of samples that wait: `2 samples are pending, more than 3 needed`."""
    are = "is" if value == 1 else "are"
    text, comma, needed = progress(trigger, value).partition(",")
    return f"{text} {are} pending{comma}{needed}"


def failure(owner_info: JsonObject | None) -> str:
    """What an agent says of a run that failed, and where its program's output is: `: exited with 2; its output …`."""
    return failure_words(owner_info, longest=_MOST_TEXT)
