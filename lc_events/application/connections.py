"""SQLite connections that keep their prepared statements: the library's (eventsourcing 9.5) keep one, the last."""

from __future__ import annotations

import sqlite3

from eventsourcing.persistence import InterfaceError
from eventsourcing.sqlite import (
    SQLITE3_DEFAULT_LOCK_TIMEOUT,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteFactory,
)
from eventsourcing.utils import Environment, EnvType

__all__ = ["StoreFactory"]


class StoreFactory(SQLiteFactory):
    """The library's factory (`PERSISTENCE_MODULE`) with connections of ours."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        given = self.datastore.pool
        self.datastore.pool = _Connections(db_name=given.db_name, lock_timeout=given.lock_timeout)


class _Connections(SQLiteConnectionPool):
    """Preparing a statement releases the GIL, as running it does, and taking it back waits for other threads."""

    def _create_connection(self) -> SQLiteConnection:
        try:
            connection = sqlite3.connect(
                self.db_name,
                timeout=self.lock_timeout or SQLITE3_DEFAULT_LOCK_TIMEOUT,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        except sqlite3.Error as error:
            raise InterfaceError(error) from error
        if not self.is_journal_mode_wal:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            self.is_journal_mode_wal = True
        connection.row_factory = sqlite3.Row
        return SQLiteConnection(connection, self.max_age)
