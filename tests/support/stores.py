"""Event stores with a history in them, as a local controller would have written it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lc_events.application.journal import Journal, open_journal
from lc_events.domain.events import LC_EVENTS, Event, Registry

NODE = "edge1"


def stored(path: Path, *histories: Iterable[Event], node: str | None = NODE) -> Path:
    """A store with these histories, each saved in one commit; returns its path."""
    journal = writing(path, node=node)
    for events in histories:
        journal.record(list(events))
    journal.close()
    return path


def writing(path: Path, *, node: str | None = NODE) -> Journal:
    """A store open for writing."""
    journal = open_journal(path, Registry(LC_EVENTS), write=True)
    if node is not None:
        journal.rows.set_about("node", node)
    return journal
