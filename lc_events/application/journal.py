"""The eventsourcing application: one store, one writer; and the same store opened to read, bit for bit unchanged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from eventsourcing.application import Application
from eventsourcing.persistence import PersistenceError

from lc_events.application.filesystem import network_file_system
from lc_events.application.mapper import EventMapper
from lc_events.application.recorder import ChainedRecorder, Head, Known, StoredRow
from lc_events.domain.events import Event, Registry
from lc_events.errors import StoreError

__all__ = ["RESTORE", "STORE_ERRORS", "Journal", "open_journal", "unusable"]

STORE_ERRORS = (StoreError, PersistenceError, sqlite3.Error)
"""What reading and writing rows may raise; the library lets some of SQLite's own errors through."""

RESTORE = "restore a copy, or move it away to start anew"
"""What to do about a store that is damaged."""


_MODES = {"rwc": "mode=rwc", "ro": "mode=ro", "immutable": "mode=ro&immutable=1"}


class Journal(Application[str]):
    """Events on disk. Only the committer saves; anything else reads, from its own connections."""

    def __init__(self, path: Path, registry: Registry, *, mode: Literal["rwc", "ro", "immutable"] = "rwc") -> None:
        self.path = path
        self.registry = registry
        super().__init__(
            {
                "PERSISTENCE_MODULE": "lc_events.application.connections:StoreFactory",
                "SQLITE_DBNAME": f"file:{quote(str(path.absolute()))}?{_MODES[mode]}",
                "ORIGINATOR_ID_TYPE": "text",
                "APPLICATION_RECORDER_TOPIC": "lc_events.application.recorder:ChainedRecorder",
                "CREATE_TABLE": "yes" if mode == "rwc" else "no",
            }
        )

    def construct_mapper(self) -> EventMapper:
        """Our names and JSON in place of module paths and transcodings."""
        return EventMapper(self.registry)

    @property
    def rows(self) -> ChainedRecorder:
        """The recorder, to read rows as they lie on disk."""
        recorder = self.recorder
        if not isinstance(recorder, ChainedRecorder):
            raise TypeError("the store has another recorder")
        return recorder

    def record(
        self, events: Sequence[Event], *, known: Iterable[Known] = (), positions: Mapping[str, int] | None = None
    ) -> None:
        """Save all events, with what comes with them, in one transaction; StoreError if nothing was saved."""
        try:
            self.events.put(events, known=known, positions=positions)
        except (PersistenceError, sqlite3.Error) as error:
            self.rows.forget_heads()
            raise StoreError(f"{self.path} could not be written: {error}") from error
        except BaseException:
            self.rows.forget_heads()
            raise

    def decode(self, row: StoredRow) -> Event:
        """The event of a row; BrokenError if this version does not know its name or fields."""
        mapper = self.mapper
        if not isinstance(mapper, EventMapper):
            raise TypeError("the store has another mapper")
        return mapper.decode(row.stream, row.version, row.name, row.state)

    def stream(self, name: str, *, gt: int = 0, lte: int | None = None) -> Iterable[Event]:
        """The events of a stream in version order."""
        return (self.decode(row) for row in self.rows.rows(stream=name, gt=gt, lte=lte))

    def head(self, stream: str) -> Head:
        """The newest version of a stream and its hash."""
        return self.rows.head(stream)


def open_journal(path: Path, registry: Registry, *, write: bool = False) -> Journal:
    """Open a store; StoreError in words if it is not there, damaged or not readable.

    Opened to read, `events.db` and its `-wal` stay as they are: no table is made, nothing is checkpointed.
    """
    if write:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (kind := network_file_system(path)) is not None:
            raise StoreError(
                f"{path} lies on a network file system ({kind}), where SQLite loses data; use a local disk"
            )
    elif not path.exists():
        raise StoreError(f"there is no event store at {path}; name one by --store or LC_STATE_DIR")
    try:
        return Journal(path, registry, mode="rwc" if write else "immutable" if _is_frozen(path) else "ro")
    except (PersistenceError, sqlite3.Error) as error:
        raise unusable(path, "opened", error) from error


def unusable(path: Path, what: str, error: Exception) -> StoreError:
    """An error of the library or of SQLite in words: the store cannot be `what`; of one that is damaged, what to do."""
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    match getattr(cause, "sqlite_errorcode", 0) & 0xFF:  # extended codes have more above these bits
        case sqlite3.SQLITE_CORRUPT:
            return StoreError(f"the event store {path} is damaged: {error}; {RESTORE}")
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"the event store {path} cannot be {what}: {error}; {RESTORE}")
    return StoreError(f"the event store {path} cannot be {what}: {error}")


def _is_frozen(path: Path) -> bool:
    """Whether a store lies where nobody can write, as on a read-only medium: SQLite then must not make its `-shm`."""
    log = path.with_name(f"{path.name}-wal")
    return not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
