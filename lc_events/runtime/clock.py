"""The clock as a port: everything that is decided by time is handed the time."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

__all__ = ["Clock", "FileClock", "SystemClock", "clock_of_environment"]


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


class FileClock(SystemClock):
    """The machine's clock, put forward by the seconds (or back, if negative) that a file holds; for tests."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        return super().now() + timedelta(seconds=float(self._path.read_text(encoding="ascii") or 0))


def clock_of_environment() -> Clock:
    """The system's clock, or in tests the one of the file that `LC_TEST_CLOCK` names."""
    path = os.environ.get("LC_TEST_CLOCK")
    return FileClock(Path(path)) if path else SystemClock()
