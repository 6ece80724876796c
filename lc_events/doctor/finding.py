"""What a check found: one line, and what to do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Finding", "Level", "note", "ok", "skipped", "wrong"]


class Level(StrEnum):
    """How bad it is: only `wrong` makes the whole examination fail."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"
    SKIPPED = "skipped"


class Finding(NamedTuple):
    """One line; texts of others in it are not yet made safe to show."""

    check: str
    level: Level
    says: str
    advice: str | None = None


def ok(check: str, says: str) -> Finding:
    """As it should be."""
    return Finding(check, Level.OK, says)


def note(check: str, says: str, advice: str) -> Finding:
    """Works, or may be meant so, but somebody should know."""
    return Finding(check, Level.NOTE, says, advice)


def wrong(check: str, says: str, advice: str) -> Finding:
    """Does not work, or will not for long."""
    return Finding(check, Level.WRONG, says, advice)


def skipped(check: str, why: str) -> Finding:
    """Could not be looked at, or there is nothing to look at."""
    return Finding(check, Level.SKIPPED, why)
