"""The proof: links, heads seen elsewhere, and that every decision follows from the facts recorded before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from typing import Any, NamedTuple

from lc_events.application.audit.archive import Archive, Follow, StoreKind, do_not_yield
from lc_events.application.audit.exports import ExportedRow
from lc_events.application.broken import BrokenError
from lc_events.application.chain import EMPTY
from lc_events.application.links import linked
from lc_events.application.mapper import EventMapper
from lc_events.application.recorder import ChainedRecorder, Head, StoredRow
from lc_events.application.snapshot_json import SCHEMA
from lc_events.application.snapshots import NOT_LOADED
from lc_events.domain.events import Event
from lc_events.messages.json import Json

__all__ = ["Checked", "Heads", "check_export", "check_in", "check_log", "check_rows", "check_store", "check_stream"]

Heads = Mapping[str, Collection[Head]]
"""Stream → heads of it that were seen outside of the store."""


class Checked(NamedTuple):
    """One stream: up to which version it is sound, or the first version that is not, and why."""

    stream: str
    version: int
    hash: str
    fault: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.fault is None

    def to_json(self) -> dict[str, Json]:
        """As CONTRACT section 7 answers `verify`; what could not be checked is added as `notes`."""
        notes: dict[str, Json] = {"notes": list(self.notes)} if self.notes else {}
        if self.fault is None:
            return {"ok": True, "version": self.version, "hash": self.hash, **notes}
        return {"ok": False, "version": self.version, "error": self.fault, **notes}


def check_stream(
    stream: str,
    rows: Iterable[StoredRow],
    *,
    decode: Callable[[StoredRow], Event],
    follow: Follow,
    heads: Collection[Head] = (),
) -> Checked:
    """Check the rows of one stream, from its first version on."""
    notes: list[str] = []
    last = Head(0, EMPTY)

    def events() -> Iterator[Event]:
        nonlocal last
        for row in linked(stream, rows, heads):
            last = Head(row.version, row.hash)
            yield decode(row)

    try:
        for _ in follow(stream, events(), notes):
            pass
    except BrokenError as error:
        return Checked(stream, error.version, "", error.fault, tuple(notes))
    return Checked(stream, last.version, last.hash, None, tuple(notes))


def check_rows(
    rows: Iterable[StoredRow], *, decode: Callable[[StoredRow], Event], follow: Follow, heads: Heads
) -> list[Checked]:
    """Check rows that stand stream by stream; streams that only `heads` know are missing."""
    found = [
        check_stream(stream, of_stream, decode=decode, follow=follow, heads=heads.get(stream, ()))
        for stream, of_stream in groupby(rows, key=lambda row: row.stream)
    ]
    here = {checked.stream for checked in found}
    return [*found, *(_missing(stream, seen) for stream, seen in heads.items() if stream not in here)]


def _missing(stream: str, seen: Collection[Head]) -> Checked:
    newest = max(head.version for head in seen)
    return Checked(stream, 1, "", f"the whole stream is missing: the head seen elsewhere is version {newest}")


def check_in(
    archive: Archive[Any],
    stream: str,
    heads: Collection[Head] = (),
    *,
    yield_to_others: Callable[[], None] = do_not_yield,
) -> Checked:
    """Check one stream of a store, and what a cache says of it; `yield_to_others` is called every 100 events."""
    rows = archive.walk(stream, yield_to_others=yield_to_others)
    checked = check_stream(stream, rows, decode=archive.journal.decode, follow=archive.kind.follow, heads=heads)
    return _check_snapshots(archive, checked, yield_to_others)


def check_store(archive: Archive[Any], heads: Heads) -> list[Checked]:
    """Check all streams of a store, in one ordered scan."""
    journal = archive.journal
    with closing(journal.rows.scan()) as rows:
        found = check_rows(rows, decode=journal.decode, follow=archive.kind.follow, heads=heads)
    return [_check_snapshots(archive, checked) for checked in found]


def _check_snapshots(
    archive: Archive[Any], checked: Checked, yield_to_others: Callable[[], None] = do_not_yield
) -> Checked:
    """A snapshot that somebody changed would make `show` wrong, although the history is sound."""
    journal, kind, stream = archive.journal, archive.kind, checked.stream
    if not checked.ok or kind.read_snapshot is None:
        return checked
    state, version = None, 0
    for snapshot in reversed(journal.rows.snapshots(stream, schema=SCHEMA)):
        rows = archive.walk(stream, after=version, last=snapshot.version, yield_to_others=yield_to_others)
        state = kind.fold(stream, map(journal.decode, rows), state)
        version = snapshot.version
        try:
            is_same = kind.read_snapshot(stream, snapshot.state) == state
        except NOT_LOADED:  # it will be passed over
            continue
        if not is_same:
            return checked._replace(version=version, hash="", fault="its snapshot is not what the events fold to")
    return checked


def check_log(rows: ChainedRecorder) -> str | None:
    """What is wrong with the log as a whole: an event that was taken out leaves a hole there, even a newest one."""
    hole = rows.first_hole()
    return None if hole is None else f"the log has a hole: event or link number {hole} is missing"


def check_export(exported: Iterable[ExportedRow], *, kind: StoreKind[Any], heads: Heads) -> list[Checked]:
    """Check an export without the store that it came from."""
    faults: dict[tuple[str, int], str] = {}
    mapper = EventMapper(kind.registry)

    def rows() -> Iterator[StoredRow]:
        for _, row, fault in exported:
            if fault is not None:
                faults[row.stream, row.version] = fault
            yield row

    def decode(row: StoredRow) -> Event:
        if (fault := faults.get((row.stream, row.version))) is not None:
            raise BrokenError(row.stream, row.version, fault)
        return mapper.decode(row.stream, row.version, row.name, row.state)

    return check_rows(rows(), decode=decode, follow=kind.follow, heads=heads)
