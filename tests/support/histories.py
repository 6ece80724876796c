"""Stored histories (tests/histories): exports, and what their streams fold to."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from lc_events.application.audit.archive import StoreKind
from lc_events.application.audit.exports import ExportedRow, read_export
from lc_events.application.mapper import EventMapper
from lc_events.cli.exports import store_kind
from lc_events.domain.events import Event

FOLDER = Path(__file__).parent.parent / "histories"


def histories() -> list[Path]:
    return sorted(FOLDER.glob("*.jsonl"))


def read_history(path: Path) -> list[ExportedRow]:
    with path.open("rb") as lines:
        return list(read_export(lines))


def events_by_stream(exported: list[ExportedRow]) -> dict[str, list[Event]]:
    mapper = EventMapper(kind_of(exported).registry)
    events = (mapper.decode(row.stream, row.version, row.name, row.state) for _, row, _ in exported)
    return {stream: list(of_stream) for stream, of_stream in groupby(events, key=lambda event: event.originator_id)}


def kind_of(exported: list[ExportedRow]) -> StoreKind[Any]:
    return store_kind(exported)


def states_of(exported: list[ExportedRow]) -> dict[str, Any]:
    """Stream to its state as `show -o json` prints it."""
    kind, node = kind_of(exported), exported[0].node
    views = {
        stream: kind.view(kind.fold(stream, events, None), node)
        for stream, events in events_by_stream(exported).items()
    }
    return json.loads(json.dumps(views))
