"""The clock against the history, against what others publish, and against itself; and the zone of daily windows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import orjson

from lc_events.application.cloud_events import time_of
from lc_events.application.recorder import ChainedRecorder, StoredRow
from lc_events.controller.world import World
from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.doctor.retained import Retained
from lc_events.domain.window import show_window
from lc_events.errors import IntegrityError
from lc_events.mqtt.topics import TopicKind

__all__ = ["Watch", "check_clock", "check_zone"]

_NTP = "set the clock, and keep it by NTP"
_UTC = ("UTC", "Etc/UTC")
_FIRST_YEAR = 2025
_STEP = 0.5
_AHEAD = 2.0
_SLOW = 60.0
_NEWEST = 5000
_ENOUGH = 3


class Watch(NamedTuple):
    """Both clocks at one moment; a wall clock that is set while we look parts from the monotonic one."""

    wall: float
    monotonic: float

    @classmethod
    def now(cls) -> Watch:
        """Both as they are."""
        return cls(time.time(), time.monotonic())


def check_clock(began: Watch, seen: Retained | None, rows: ChainedRecorder | None) -> Iterator[Finding]:
    """Compare the clock with the store's `rows` and with what the broker keeps (`seen`), as far as they are there."""
    now = datetime.now(UTC)
    found: list[Finding] = []
    if now.year < _FIRST_YEAR:
        found.append(wrong("clock", f"it says {now:%Y-%m-%d}", _NTP))
    later = Watch.now()
    step = (later.wall - began.wall) - (later.monotonic - began.monotonic)
    if abs(step) > _STEP:
        found.append(wrong("clock", f"it was set by {step:+.1f} s while we looked", _NTP))
    if seen is not None:
        found += _against_others(seen, now)
    if rows is not None:
        found += _against_history(_newest(rows), now)
    yield from found or [ok("clock", f"it says {now:%Y-%m-%d %H:%M:%S} UTC, and agrees with what is known from here")]


def _against_others(seen: Retained, now: datetime) -> Iterator[Finding]:
    """A retained value cannot have been published in the future; one from the past says nothing."""
    for topic, _, _ in seen.parsed():
        if topic.kind is TopicKind.STATUS:
            status = seen.json(seen.topics.status(topic.node)) or {}
            ahead = _seconds(status.get("time"), now)
            if ahead is not None and ahead > _AHEAD:
                says = f"the status of node {topic.node} is from a moment {ahead:.0f} s ahead of this clock"
                yield wrong("clock", says, f"{_NTP}, there and here")


def _newest(rows: ChainedRecorder) -> Sequence[StoredRow]:
    last = rows.max_notification_id() or 0
    return rows.rows(gt=max(0, last - _NEWEST))


def _against_history(rows: Sequence[StoredRow], now: datetime) -> Iterator[Finding]:
    times = [(row, at) for row in rows if (at := _time(row)) is not None]
    newest = max(times, key=lambda pair: pair[1], default=None)
    if newest is not None and (ahead := (newest[1] - now).total_seconds()) > _AHEAD:
        row = newest[0]
        yield wrong(
            "clock", f"{row.stream} version {row.version} is from a moment {ahead:.0f} s ahead: it went back", _NTP
        )
    steps = [(before - after).total_seconds() for (_, before), (_, after) in pairwise(times)]
    back = [step for step in steps if step > _AHEAD]
    if back:
        says = f"it went back {len(back)} times in the last {len(times)} events, by {max(back):.0f} s at most"
        yield note("clock", says, f"{_NTP}; the history goes by versions, so it is whole")
    yield from _against_gm(rows)


def _against_gm(rows: Sequence[StoredRow]) -> Iterator[Finding]:
    """A condition that is news comes after GM wrote it, and not long after: the least difference tells the skew."""
    lags = [lag for row in rows if row.name == "GlobalManagerMessageReceived" and (lag := _lag(row)) is not None]
    least = min(lags, default=0.0)
    if least < -_AHEAD:
        yield wrong("clock", f"it is at least {-least:.0f} s behind the global manager's", f"{_NTP}, there and here")
    elif least > _SLOW and len(lags) >= _ENOUGH:
        says = f"no message of the global manager came within {least:.0f} s: this clock is ahead, or the link is slow"
        yield note("clock", says, f"{_NTP}, there and here")


def _lag(row: StoredRow) -> float | None:
    received = _time(row)
    try:
        written = orjson.loads(row.state)["conditions"][-1]["lastTransitionTime"]
    except (ValueError, LookupError, TypeError):
        return None
    ahead = None if received is None else _seconds(written, received)
    return None if ahead is None else -ahead


def _time(row: StoredRow) -> datetime | None:
    try:
        return datetime.fromisoformat(time_of(row))
    except (IntegrityError, ValueError):
        return None


def _seconds(text: object, since: datetime) -> float | None:
    """How much later than `since` a time is; None for text that is not a time with an offset."""
    try:
        return (datetime.fromisoformat(text) - since).total_seconds() if isinstance(text, str) else None
    except (ValueError, TypeError, OverflowError):
        return None


def check_zone(zone: str, world: World | None, *, is_set: bool) -> Iterator[Finding]:
    """The zone that the windows of triggers are read in."""
    local = datetime.now(ZoneInfo(zone))
    says = f"{zone}, where it is {local:%H:%M}"
    jobs = [] if world is None else [job for job in world.jobs() if job.is_live]
    windows = sorted({show_window(job.trigger.window) for job in jobs if job.trigger.window is not None})
    if windows:
        says += f"; windows {', '.join(windows[:5])} are read in it"
    others = sorted({job.zone for job in jobs if job.trigger.window is not None} - {zone})
    if others:
        yield note(
            "zone", f"{says}, but were last decided in {', '.join(others)}", "set the same LC_TIMEZONE everywhere"
        )
    elif windows and zone in _UTC and not is_set:
        yield note(
            "zone",
            f"{says}, because LC_TIMEZONE is not set",
            "set LC_TIMEZONE, for example to Europe/Berlin, or to UTC",
        )
    else:
        yield ok("zone", says)
