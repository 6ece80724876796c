"""Times as events carry them, and all that is compared with those."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["stamp"]


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, always 27 characters: such texts sort as their times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"
