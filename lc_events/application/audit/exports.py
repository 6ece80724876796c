"""A history as a file: one CloudEvent a line with its stored bytes, which can be checked without the store."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import orjson

from lc_events.application.chain import EMPTY
from lc_events.application.cloud_events import TYPE_PREFIX, TYPE_SUFFIX, cloud_event
from lc_events.application.recorder import StoredRow
from lc_events.errors import IntegrityError, UsageError

__all__ = ["ExportedRow", "export_lines", "read_export"]


class ExportedRow(NamedTuple):
    """A line of an export: whose node's it is, the row as it lay in the store, and what is wrong with the line."""

    node: str
    row: StoredRow
    fault: str | None = None


def export_lines(node: str, rows: Iterable[StoredRow]) -> Generator[bytes]:
    """Lines, without their ends, of rows that stand stream by stream; to be closed if it is left before its end."""
    stream, previous = "", EMPTY
    for row in rows:
        if row.stream != stream:
            stream, previous = row.stream, EMPTY
        yield cloud_event(node, row, previous, raw=True)
        previous = row.hash


def read_export(lines: Iterable[bytes]) -> Iterator[ExportedRow]:
    """The rows of an export, in its order; a line that contradicts its stored bytes has a fault.

    Raises UsageError for a line that is not from an export, and for lines of several nodes.
    """
    node, stream, previous = None, "", EMPTY
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields, exported = _read(line, number)
        if node not in (None, exported.node):
            raise UsageError(f"line {number} is of node {exported.node}, those before of node {node}: one node a file")
        row = exported.row
        if row.stream != stream:
            stream, previous = row.stream, EMPTY
        yield exported._replace(fault=_fault(fields, exported, previous))
        node, previous = exported.node, row.hash


def _read(line: bytes, number: int) -> tuple[dict[str, object], ExportedRow]:
    try:
        fields = orjson.loads(line)
        name = fields["type"].removeprefix(TYPE_PREFIX).removesuffix(TYPE_SUFFIX)
        stored = b64decode(fields["stored"], validate=True)
        row = StoredRow(number, fields["subject"], fields["sequence"], name, stored, fields["hash"])
        node = fields["source"].removeprefix("/sedna/")
        is_whole = row.stream.count("/") == 2 and type(row.version) is int and isinstance(row.hash, str) and bool(node)
    except (ValueError, KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise UsageError(f"line {number} is not from an export; `lc-events export` writes them")
    return fields, ExportedRow(node, row)


def _fault(fields: dict[str, object], exported: ExportedRow, previous: str) -> str | None:
    try:
        rebuilt = orjson.loads(cloud_event(exported.node, exported.row, previous, raw=True))
    except (IntegrityError, ValueError):
        return "its stored bytes are not an event"
    if fields == rebuilt:
        return None
    differing = ", ".join(sorted(n for n in {**fields, **rebuilt} if fields.get(n) != rebuilt.get(n)))
    return f"the line contradicts its stored bytes or the line before it: {differing}"
