"""Stores in which somebody changed history, with or without making the chain fit again."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Self

import orjson

from lc_events.application.chain import EMPTY, next_hash


class Tampered:
    """A store that its owner rewrites by hand."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.commit()
        self._connection.close()

    def run(self, statement: str, *values: Any) -> None:
        assert self._connection.execute(statement, values).rowcount, statement  # -1 where no rows are meant

    def state(self, version: int) -> bytes:
        query = "SELECT state FROM stored_events WHERE originator_version = ?"
        return bytes(self._connection.execute(query, (version,)).fetchone()[0])

    def set_state(self, version: int, state: bytes) -> None:
        self.run("UPDATE stored_events SET state = ? WHERE originator_version = ?", state, version)

    def set_fields(self, version: int, **fields: Any) -> None:
        """Change fields of an event; one that is None goes."""
        changed = {**orjson.loads(self.state(version)), **fields}
        self.set_state(version, orjson.dumps({name: value for name, value in changed.items() if value is not None}))

    def remove(self, version: int) -> None:
        """Take out an event and its link."""
        self.run(
            "DELETE FROM chain WHERE notification_id = (SELECT rowid FROM stored_events WHERE originator_version = ?)",
            version,
        )
        self.run("DELETE FROM stored_events WHERE originator_version = ?", version)

    def close_gap(self, version: int) -> None:
        """Let the versions after a removed one follow."""
        self.run(
            "UPDATE stored_events SET originator_version = -originator_version + 1 WHERE originator_version > ?",
            version,
        )
        self.run("UPDATE stored_events SET originator_version = -originator_version WHERE originator_version < 0")

    def swap(self, one: int, other: int) -> None:
        self.run("UPDATE stored_events SET originator_version = -1 WHERE originator_version = ?", one)
        self.run("UPDATE stored_events SET originator_version = ? WHERE originator_version = ?", one, other)
        self.run("UPDATE stored_events SET originator_version = ? WHERE originator_version = -1", other)

    def link_again(self) -> None:
        """Make the chain and the numbers of the log fit to what the one stream holds now: who owns the box can."""
        rows = self._connection.execute(
            "SELECT originator_id, originator_version, topic, state FROM stored_events ORDER BY originator_version"
        ).fetchall()
        self._connection.execute("DELETE FROM stored_events")
        self._connection.execute("DELETE FROM chain")
        hash_ = EMPTY
        for number, row in enumerate(rows, start=1):
            hash_ = next_hash(hash_, *row)
            self._connection.execute(
                "INSERT INTO stored_events (rowid, originator_id, originator_version, topic, state)"
                " VALUES (?, ?, ?, ?, ?)",
                (number, *row),
            )
            self._connection.execute("INSERT INTO chain VALUES (?, ?)", (number, bytes.fromhex(hash_)))
