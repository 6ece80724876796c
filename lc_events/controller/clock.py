"""The clock as a port: everything that is decided by time is handed the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "stamp"]


class Clock(Protocol):
    """Wall-clock time, which may jump, and seconds that only grow."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; for pauses and periods."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment; for pauses and periods."""
        return time.monotonic()


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, always 27 characters: such texts sort as their times do."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
