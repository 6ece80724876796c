"""Taking an export into a store: the same bytes, versions and chain, in a store without these streams."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eventsourcing.persistence import PersistenceError, StoredEvent

from lc_events.application.journal import Journal
from lc_events.application.recorder import StoredRow
from lc_events.errors import ConflictError, StoreError

__all__ = ["import_rows"]


def import_rows(journal: Journal, node: str, rows: Sequence[StoredRow], *, readers: Collection[str] = ()) -> None:
    """Save rows that were verified, all or nothing; who holds the store's folder must have locked it.

    `readers` are the positions of those who publish the log: what is imported was published long ago, and must not go
    out again. Raises ConflictError if the store has one of the streams, belongs to another node, or still has
    something to publish; StoreError if nothing could be saved.
    """
    here = journal.rows.about("node")
    if here not in (None, node):
        raise ConflictError(f"{journal.path} is the store of node {here}, the export is of node {node}")
    for stream in dict.fromkeys(row.stream for row in rows):
        if (version := journal.head(stream).version) > 0:
            raise ConflictError(f"{journal.path} has {stream} already, up to version {version}")
    newest = journal.recorder.max_notification_id() or 0
    behind = [name for name in readers if newest and journal.rows.position(name) < newest]
    if behind:
        raise ConflictError(f"{journal.path} holds events that are not published yet: run its controller first")
    stored = [StoredEvent(row.stream, row.version, row.name, row.state) for row in rows]
    try:
        journal.rows.set_about("node", node)
        journal.rows.insert_events(stored, positions=dict.fromkeys(readers, newest + len(rows)))
    except PersistenceError as error:
        raise StoreError(f"{journal.path} could not be written: {error}") from error
