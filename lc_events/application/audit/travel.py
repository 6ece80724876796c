"""Going back: which version held at a time, and which events lie between two points."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from lc_events.application.audit.archive import Archive
from lc_events.application.chain import EMPTY
from lc_events.application.cloud_events import time_of
from lc_events.application.recorder import StoredRow
from lc_events.errors import NotFoundError

__all__ = ["Linked", "Moment", "Span", "history", "version_at"]


class Moment(NamedTuple):
    """The version that held at a time; `later` are earlier versions that say a later time: the clock went back."""

    version: int
    later: tuple[int, ...]


class Linked(NamedTuple):
    """A stored row, and the hash of the version before it."""

    row: StoredRow
    previous_hash: str


class Span(NamedTuple):
    """Which events are asked for; bounds are included, times are receipt times as events carry them."""

    first: int | None = None
    last: int | None = None
    since: str | None = None
    until: str | None = None
    names: Collection[str] = ()


def version_at(archive: Archive[Any], stream: str, time: str) -> Moment:
    """The highest version whose time is not after `time`, in version order (CONTRACT section 8).

    `time` is RFC 3339 in UTC with microseconds, as events carry it. NotFoundError if the stream began later.
    """
    until, after = archive.journal.rows.versions_by_time(stream, time)
    if not until:
        first = archive.rows(stream, last=1)
        raise NotFoundError(f"{stream} had no event yet at {time}: its first is of {time_of(first[0])}")
    return Moment(until[-1], tuple(version for version in after if version < until[-1]))


def history(archive: Archive[Any], stream: str, span: Span) -> Iterator[Linked]:
    """The events of a span in version order."""
    first = max(1, span.first or 1)
    previous = EMPTY
    for row in archive.rows(stream, first=max(1, first - 1), last=span.last):
        before, previous = previous, row.hash
        if row.version < first or (span.names and row.name not in span.names):
            continue
        if span.since is not None or span.until is not None:
            at = time_of(row)
            if at < (span.since or at) or at > (span.until or at):
                continue
        yield Linked(row, before)
