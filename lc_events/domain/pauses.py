"""How long what failed waits for its next attempt: 1 s, 2 s … 60 s."""

from __future__ import annotations

__all__ = ["LONGEST_PAUSE", "pause_after"]

LONGEST_PAUSE = 60.0
"""Seconds; so often at least it is tried again, for ever."""


def pause_after(attempt: int) -> float:
    """Seconds between attempt number `attempt`, counted from 1, and the next one."""
    return min(2.0 ** min(attempt - 1, 10), LONGEST_PAUSE)
