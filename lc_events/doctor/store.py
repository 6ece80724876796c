"""The event store, opened to read: whether it is there, sound, this node's, and every link of its chains holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from lc_events.application.broken import BrokenError
from lc_events.application.journal import Journal, open_journal
from lc_events.application.links import linked
from lc_events.application.recorder import ChainedRecorder
from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.domain.events import LC_EVENTS, Registry

__all__ = ["check_chain", "check_store", "is_controllers", "missing_store", "opened"]

_RESTORE = "restore a copy, or move it away to start anew; `lc-events verify` says what can still be trusted"
_MOST = 5


def opened(path: Path) -> Journal:
    """The store, to read; STORE_ERRORS of the journal if it cannot be."""
    return open_journal(path, Registry(LC_EVENTS))


def is_controllers(rows: ChainedRecorder) -> bool:
    """Whether a local controller wrote it (or nobody yet), not a global manager."""
    return all(row.name != "ResourceApplied" for row in rows.rows(limit=1))


def missing_store(path: Path, *, is_named: bool) -> Finding:
    """A store that is not there: a fault where somebody said that it is."""
    says, advice = f"there is none at {path}", "start `lc-events run`, or name it by --store or LC_STATE_DIR"
    return wrong("store", says, advice) if is_named else note("store", says, advice)


def check_store(journal: Journal, node: str | None) -> Iterator[Finding]:
    """SQLite's own check, and whose history it is; `node` is who would go on with it."""
    found: list[Finding] = []
    if (complaint := journal.rows.quick_check()) is not None:
        found.append(wrong("store", f"{journal.path} is damaged: {complaint}", _RESTORE))
    whose = journal.rows.about("node")
    if node is not None and whose not in (None, node):
        says = f"{journal.path} is the history of node {whose}, not of {node}"
        found.append(wrong("store", says, "set LC_NODE, or another LC_STATE_DIR for each node"))
    yield from found or [ok("store", f"{journal.path} is sound (quick_check)")]


def check_chain(rows: ChainedRecorder) -> Iterator[Finding]:
    """Every link, gaps and the whole log; that decisions follow from their facts is for `verify`."""
    broken: list[BrokenError] = []
    streams = events = 0
    for stream, of_stream in groupby(rows.scan(), key=lambda row: row.stream):
        streams += 1
        try:
            events += sum(1 for _ in linked(stream, of_stream))
        except BrokenError as error:
            broken.append(error)
    for break_ in broken[:_MOST]:
        yield wrong("chain", str(break_), _RESTORE)
    if len(broken) > _MOST:
        yield wrong("chain", f"and {len(broken) - _MOST} more streams are broken", "lc-events verify")
    if (hole := rows.first_hole()) is not None:
        yield wrong("chain", f"the log has a hole: event or link number {hole} is missing", _RESTORE)
    elif not broken:
        yield ok("chain", f"every link of {events} events in {streams} streams holds")
