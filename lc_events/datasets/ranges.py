"""Ranges of numbers [first, last)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Range", "gaps", "merged"]

Range: TypeAlias = tuple[int, int]


def gaps(whole: Range, ranges: Iterable[Range]) -> list[Range]:
    """The parts of a range that lie in none of the others, in order."""
    first, last = whole
    found = []
    for begin, end in sorted(ranges):
        if first < min(begin, last):
            found.append((first, min(begin, last)))
        first = max(first, end)
    return [*found, (first, last)] if first < last else found


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same numbers, each in one range only, in order."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        elif first < last:
            found.append((first, last))
    return found
