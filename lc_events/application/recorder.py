"""The library's SQLite recorder, extended in one transaction by the chain, the known messages and positions."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from eventsourcing.persistence import PersistenceError, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteCursor, SQLiteDatastore

from lc_events.application.chain import EMPTY, next_hash
from lc_events.errors import IntegrityError

__all__ = ["ChainedRecorder", "Head", "Known", "Snapshot", "StoredRow"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS chain (notification_id INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
    """CREATE TABLE IF NOT EXISTS known_messages (
        position INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL, context TEXT NOT NULL,
        time REAL NOT NULL, UNIQUE (scope, key))""",
    "CREATE TABLE IF NOT EXISTS positions (name TEXT PRIMARY KEY, notification_id INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS snapshots (
        stream TEXT NOT NULL, version INTEGER NOT NULL, schema TEXT NOT NULL, hash BLOB NOT NULL, state BLOB NOT NULL,
        PRIMARY KEY (stream, version)) WITHOUT ROWID""",
)
_ROWS_AT_ONCE = 100
_PAGE = 500
_ROWS = (
    # casts, for whoever edits a store by hand may leave other types: their bytes are what is hashed
    "SELECT e.rowid, e.originator_id, CAST(e.originator_version AS INTEGER), coalesce(CAST(e.topic AS TEXT), ''),"
    " coalesce(CAST(e.state AS BLOB), x''), lower(hex(c.hash))"
    " FROM stored_events e LEFT JOIN chain c ON c.notification_id = e.rowid "
)

_MAX_VERSION = 2**63 - 1


class Head(NamedTuple):
    """The newest version of a stream and its hash (hex)."""

    version: int
    hash: str


class Known(NamedTuple):
    """A message that was taken in: `key` is its id or digest, `time` seconds since the epoch."""

    scope: str
    key: str
    context: str
    time: float


class Snapshot(NamedTuple):
    """A folded state as JSON, and the hash (hex) of the event that was the last in it."""

    stream: str
    version: int
    schema: str
    hash: str
    state: bytes


class StoredRow(NamedTuple):
    """An event as it lies on disk; `hash` is empty if its link is missing."""

    notification_id: int
    stream: str
    version: int
    name: str
    state: bytes
    hash: str


class ChainedRecorder(SQLiteApplicationRecorder):
    """Inserts events only as the next versions of their streams, each with its link of the chain."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self._heads: dict[str, Head] = {}

    def construct_create_table_statements(self) -> list[str]:
        """The library's events table, and ours."""
        return [*super().construct_create_table_statements(), *_TABLES]

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert all or nothing; the heads move only after the commit."""
        heads: dict[str, Head] = {}
        ids = super().insert_events(stored_events, heads=heads, **kwargs)
        self._heads.update(heads)
        return ids

    def _insert_events(  # type: ignore[override]
        self,
        c: SQLiteCursor,
        stored_events: Sequence[StoredEvent],
        *,
        heads: dict[str, Head],
        known: Iterable[Known] = (),
        positions: Mapping[str, int] | None = None,
        **_: Any,
    ) -> Sequence[int]:
        rows, hashes = [], []
        for event in stored_events:
            stream = str(event.originator_id)
            head = heads.get(stream) or self._head(c, stream)
            if event.originator_version != head.version + 1:
                raise IntegrityError(f"{stream}: version {event.originator_version} does not follow {head.version}")
            hash_ = next_hash(head.hash, stream, event.originator_version, event.topic, event.state)
            rows.append((stream, event.originator_version, event.topic, event.state))
            hashes.append(bytes.fromhex(hash_))
            heads[stream] = Head(event.originator_version, hash_)
        columns = "(originator_id, originator_version, topic, state)"
        _insert(c, f"INSERT INTO {self.events_table_name} {columns}", rows)
        last = c.lastrowid or 0
        ids = range(last + 1 - len(rows), last + 1)
        _insert(c, "INSERT INTO chain", list(zip(ids, hashes, strict=True)))
        _insert(c, "INSERT OR REPLACE INTO known_messages (scope, key, context, time)", list(known))
        _insert(c, "INSERT OR REPLACE INTO positions", list((positions or {}).items()))
        return ids

    def _head(self, c: SQLiteCursor, stream: str) -> Head:
        return self._heads.get(stream) or self._read_head(c, stream)

    @staticmethod
    def _read_head(c: SQLiteCursor, stream: str) -> Head:
        c.execute(_ROWS + "WHERE e.originator_id = ? ORDER BY e.originator_version DESC LIMIT 1", (stream,))
        row = c.fetchone()
        return Head(0, EMPTY) if row is None else Head(row[2], row[5])

    def head(self, stream: str) -> Head:
        """The newest version of a stream and its hash; version 0 for a stream that is not there.

        It is not remembered: a reader on another thread could put it over the newer one of a commit made meanwhile.
        """
        if (known := self._heads.get(stream)) is not None:
            return known
        with self._reading() as c:
            return self._read_head(c, stream)

    def forget_heads(self) -> None:
        """Read the heads from disk again: after a failed save, what is remembered proves nothing."""
        self._heads.clear()

    @contextmanager
    def _reading(self) -> Iterator[SQLiteCursor]:
        """For SELECTs that each see one state of the store, though not all the same: no BEGIN and ROLLBACK around them.

        Each statement releases the GIL, and taking it back waits for other threads.
        """
        with self.datastore.get_connection(commit=False) as connection:
            cursor = connection.cursor()
            try:
                with cursor:
                    yield cursor
            except sqlite3.Error as error:
                raise PersistenceError(error) from error

    def rows(
        self,
        *,
        stream: str | None = None,
        gt: int = 0,
        lte: int | None = None,
        names: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[StoredRow]:
        """Rows of one stream in version order, or of the whole log (`gt`, `lte`: notification ids) in log order.

        Of events of these `names` only, if any are given.
        """
        column = "e.rowid" if stream is None else "e.originator_version"
        clauses: list[str] = [f"{column} > ?"]
        values: list[int | str] = [gt]
        if stream is not None:
            clauses.append("e.originator_id = ?")
            values.append(stream)
        if lte is not None:
            clauses.append(f"{column} <= ?")
            values.append(lte)
        if names:
            clauses.append(f"e.topic IN ({','.join('?' * len(names))})")
            values += names
        statement = f"{_ROWS} WHERE {' AND '.join(clauses)} ORDER BY {column} LIMIT ?"
        values.append(-1 if limit is None else limit)
        with self._reading() as c:
            c.execute(statement, values)
            return [StoredRow(*row) for row in c.fetchall()]

    def pages(
        self, stream: str, *, gt: int = 0, lte: int | None = None, names: Sequence[str] = ()
    ) -> Iterator[list[StoredRow]]:
        """`rows` of a stream, up to 500 at a time and none held longer: a long history, or one that still grows."""
        while page := self.rows(stream=stream, gt=gt, lte=lte, names=names, limit=_PAGE):
            yield page
            if page[-1].version <= gt:
                return  # only a version that is not a number does not grow
            gt = page[-1].version

    def versions_by_time(self, stream: str, time: str) -> tuple[list[int], list[int]]:
        """The versions of a stream whose receipt is not after `time`, and those after it; each in order.

        Every stored event begins with its receipt, 27 characters whose order is that of time: no row is parsed.
        """
        with self.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT originator_version, CAST(substr(state, 10, 27) AS TEXT) > ? FROM stored_events"
                " WHERE originator_id = ? ORDER BY originator_version",
                (time, stream),
            )
            found: tuple[list[int], list[int]] = ([], [])
            for version, is_after in c.fetchall():
                found[is_after].append(version)
            return found

    def newest(self, stream: str, names: Sequence[str], *, lte: int) -> StoredRow | None:
        """The newest event of one of these names, up to a version."""
        marks = ",".join("?" * len(names))
        with self.datastore.transaction(commit=False) as c:
            c.execute(
                f"{_ROWS} WHERE e.originator_id = ? AND e.originator_version <= ? AND e.topic IN ({marks})"
                " ORDER BY e.originator_version DESC LIMIT 1",
                (stream, lte, *names),
            )
            row = c.fetchone()
            return None if row is None else StoredRow(*row)

    def scan(self) -> Generator[StoredRow]:
        """Every row, stream by stream and in version order, without holding them all.

        It holds a connection, so it is to be closed if it is left before its end.
        """
        with self.datastore.transaction(commit=False) as c:
            c.execute(f"{_ROWS} ORDER BY e.originator_id, e.originator_version")
            while rows := c.sqlite_cursor.fetchmany(5000):
                yield from (StoredRow(*row) for row in rows)

    def hashes(self, stream: str, versions: Sequence[int]) -> dict[int, str]:
        """Hashes (hex) of those versions of a stream that are there."""
        found: dict[int, str] = {}
        with self.datastore.transaction(commit=False) as c:
            for start in range(0, len(versions), 500):
                part = versions[start : start + 500]
                c.execute(
                    "SELECT e.originator_version, lower(hex(c.hash)) FROM stored_events e"  # noqa: S608 - only marks
                    " JOIN chain c ON c.notification_id = e.rowid WHERE e.originator_id = ?"
                    f" AND e.originator_version IN ({','.join('?' * len(part))})",
                    (stream, *part),
                )
                found.update((row[0], row[1]) for row in c.fetchall())
        return found

    def streams(self) -> list[str]:
        """The names of all streams, sorted."""
        with self.datastore.transaction(commit=False) as c:
            c.execute("SELECT DISTINCT originator_id FROM stored_events ORDER BY originator_id")
            return [row[0] for row in c.fetchall()]

    def known_keys(self, pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Which of these (scope, key) pairs were taken in before."""
        found: set[tuple[str, str]] = set()
        with self._reading() as c:
            for start in range(0, len(pairs), 400):
                part = pairs[start : start + 400]
                marks = ",".join(["(?,?)"] * len(part))
                # a join, for SQLite scans the whole table for `(scope, key) IN (VALUES …)`
                c.execute(
                    f"WITH asked (s, k) AS (VALUES {marks}) SELECT scope, key FROM asked"  # noqa: S608 - only marks
                    " CROSS JOIN known_messages ON scope = s AND key = k",
                    [text for pair in part for text in pair],
                )
                found.update((row[0], row[1]) for row in c.fetchall())
        return found

    def newest_known(self, scope: str, limit: int) -> list[Known]:
        """The newest messages of a scope, the newest first."""
        with self.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT scope, key, context, time FROM known_messages WHERE scope = ? ORDER BY position DESC LIMIT ?",
                (scope, limit),
            )
            return [Known(*row) for row in c.fetchall()]

    def forget_known(self, *, before: float, keep: int) -> None:
        """Drop known messages older than `before` (seconds since the epoch), but none of the newest `keep`."""
        with self.datastore.transaction(commit=True) as c:
            c.execute(
                "DELETE FROM known_messages WHERE time < ?"
                " AND position <= (SELECT max(position) FROM known_messages) - ?",
                (before, keep),
            )

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the database and empty it, as far as no reader is in the way."""
        with self.datastore.get_connection(commit=True) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def position(self, name: str) -> int:
        """Up to which notification `name` has gone; 0 at first."""
        with self.datastore.transaction(commit=False) as c:
            c.execute("SELECT notification_id FROM positions WHERE name = ?", (name,))
            row = c.fetchone()
            return 0 if row is None else int(row[0])

    def about(self, name: str) -> str | None:
        """What the store says of itself: `node`, whose history it is; None where an older one does not say."""
        with self.datastore.transaction(commit=False) as c:
            if not self._has_table(c, "about"):
                return None
            c.execute("SELECT value FROM about WHERE name = ?", (name,))
            row = c.fetchone()
            return None if row is None else str(row[0])

    def set_about(self, name: str, value: str) -> None:
        """Have the store say this of itself; written only if it is news."""
        if self.about(name) != value:
            with self.datastore.transaction(commit=True) as c:
                c.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def first_hole(self) -> int | None:
        """The first notification id whose event or link is missing: the log has no holes as long as none is removed."""
        with self.datastore.transaction(commit=False) as c:
            c.execute("SELECT rowid FROM stored_events ORDER BY rowid")
            events = [row[0] for row in c.fetchall()]
            c.execute("SELECT notification_id FROM chain ORDER BY notification_id")
            links = [row[0] for row in c.fetchall()]
        whole = range(1, max([0, *events[-1:], *links[-1:]]) + 1)
        return min((set(whole) - set(events)) | (set(whole) - set(links)), default=None)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a folded state; what is there of this version gives way."""
        with self.datastore.transaction(commit=True) as c:
            values = (*snapshot[:3], bytes.fromhex(snapshot.hash), snapshot.state)
            c.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", values)

    def snapshots(self, stream: str, *, schema: str, lte: int | None = None) -> list[Snapshot]:
        """The snapshots of a stream, the newest first, as far as the chain still has the hash that each names."""
        with self.datastore.transaction(commit=False) as c:
            if not self._has_table(c, "snapshots"):
                return []
            c.execute(
                "SELECT s.stream, s.version, s.schema, lower(hex(s.hash)), s.state FROM snapshots s"
                " JOIN stored_events e ON e.originator_id = s.stream AND e.originator_version = s.version"
                " JOIN chain c ON c.notification_id = e.rowid AND c.hash = s.hash"
                " WHERE s.stream = ? AND s.schema = ? AND s.version <= ? ORDER BY s.version DESC",
                (stream, schema, _MAX_VERSION if lte is None else lte),
            )
            return [Snapshot(*row) for row in c.fetchall()]

    def newest_snapshots(self) -> dict[str, int]:
        """Stream to the version of its newest snapshot."""
        with self.datastore.transaction(commit=False) as c:
            c.execute("SELECT stream, max(version) FROM snapshots GROUP BY stream")
            return {row[0]: row[1] for row in c.fetchall()}

    def drop_snapshots(self, *, keep: str) -> None:
        """Drop snapshots of other schemas than this one."""
        with self.datastore.transaction(commit=True) as c:
            c.execute("DELETE FROM snapshots WHERE schema != ?", (keep,))

    @staticmethod
    def _has_table(c: SQLiteCursor, name: str) -> bool:
        c.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
        return c.fetchone() is not None

    def quick_check(self) -> str | None:
        """SQLite's own `quick_check`; None if the database is sound, else its first complaint, on one line."""
        try:
            with self.datastore.transaction(commit=False) as c:
                c.execute("PRAGMA quick_check(1)")
                answer = str(c.fetchone()[0])
        except sqlite3.DatabaseError as error:
            answer = str(error)
        return None if answer == "ok" else " ".join(answer.split())


def _insert(c: SQLiteCursor, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, many with each call: a call releases the GIL, and taking it back waits for other threads."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        marks = ",".join([f"({','.join('?' * len(part[0]))})"] * len(part))
        c.execute(f"{statement} VALUES {marks}", [value for row in part for value in row])
