"""What commands print: tables for people, JSON for programs; no text of others commands the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice

import orjson
import typer

from lc_events.printable import printable

__all__ = ["Format", "json_text", "print_json", "print_lines", "print_list", "table"]

_LINES_AT_ONCE = 500
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What may stand in JSON text as it is, but commands a terminal or turns the writing direction."""


class Format(StrEnum):
    """How a command prints data."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


def json_text(document: bytes) -> str:
    """JSON that means the same, with everything escaped that a terminal might obey."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", document.decode())


def print_json(value: object, form: Format) -> None:
    """Print one value: indented as `json`, on one line as `jsonl`."""
    typer.echo(json_text(orjson.dumps(value, option=orjson.OPT_INDENT_2 if form is Format.JSON else 0)))


def print_list(documents: Iterable[bytes], form: Format) -> None:
    """Print JSON documents, one a line; as `json` they make one list."""
    if form is Format.JSONL:
        print_lines(map(json_text, documents))
        return
    print_lines(_as_list(map(json_text, documents)))


def _as_list(texts: Iterator[str]) -> Iterator[str]:
    line = next(texts, None)
    if line is None:
        yield "[]"
        return
    start = "["
    for following in texts:
        yield f"{start}{line},"
        start, line = "", following
    yield f"{start}{line}]"


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, many at a time, for a history may be long."""
    rest = iter(lines)
    while chunk := list(islice(rest, _LINES_AT_ONCE)):
        typer.echo("\n".join(chunk))


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Rows in columns as wide as they need to be; numbers stand to the right, and every text is made safe."""
    columns = [*zip(titles, *rows, strict=True)]
    texts = [["-" if cell is None else printable(str(cell)) for cell in column] for column in columns]
    widths = [max(map(len, column)) for column in texts]
    numeric = [len(column) > 1 and all(isinstance(cell, int) for cell in column[1:]) for column in columns]
    for line in zip(*texts, strict=True):
        cells = zip(line, widths, numeric, strict=True)
        yield "  ".join(text.rjust(width) if right else text.ljust(width) for text, width, right in cells).rstrip()
