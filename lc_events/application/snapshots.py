"""Snapshots, a cache: states folded so far, so that a long history need not be read from its beginning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from eventsourcing.persistence import PersistenceError

from lc_events.application.journal import Journal
from lc_events.application.recorder import Snapshot
from lc_events.application.snapshot_json import SCHEMA, State, write_state

__all__ = ["EVERY", "NOT_LOADED", "Snapshots", "newest_state"]

S = TypeVar("S")

_log = logging.getLogger("lc_events.snapshots")

EVERY = 5000
"""Events of a stream from one snapshot to the next."""

NOT_LOADED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What loading a snapshot raises that is not as this code would have written it."""


class Snapshots:
    """The writing side, on the one writer's thread: `Committer.listen(Snapshots(journal).consider)`."""

    def __init__(self, journal: Journal, every: int = EVERY) -> None:
        """Snapshots of other versions of this program are dropped, because those fold differently."""
        self._journal = journal
        self._every = every
        journal.rows.drop_snapshots(keep=SCHEMA)
        self._taken = journal.rows.newest_snapshots()

    def consider(self, states: Iterable[State]) -> None:
        """Take a snapshot of each committed state that is 5,000 events past its last one, in a commit of its own.

        Where the store cannot be written just now, the next commit of that stream tries again.
        """
        for state in states:
            if state.version - self._taken.get(state.stream, 0) >= self._every:
                try:
                    self._take(state)
                except PersistenceError as error:
                    _log.warning("no snapshot of %s: %s", state.stream, error)

    def _take(self, state: State) -> None:
        head = self._journal.head(state.stream)
        if head.version == state.version:
            snapshot = Snapshot(state.stream, state.version, SCHEMA, head.hash, write_state(state))
            self._journal.rows.save_snapshot(snapshot)
            self._taken[state.stream] = state.version


def newest_state(
    journal: Journal, stream: str, *, lte: int | None, read: Callable[[str, bytes], S], schema: str = SCHEMA
) -> S | None:
    """The newest state that was kept up to a version; None if there is none that loads."""
    for snapshot in journal.rows.snapshots(stream, schema=schema, lte=lte):
        try:
            return read(stream, snapshot.state)
        except NOT_LOADED:
            continue
    return None
