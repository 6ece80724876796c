"""What commands print: tables for people, JSON for programs; no text from others can control the terminal."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from textwrap import wrap

import orjson
import typer

from lc_events.printable import printable

__all__ = ["Format", "fold", "json_text", "print_json", "print_lines", "print_list", "table"]

_LINES_AT_ONCE = 500
_INDENT = "    "
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON leaves as they are, but that control a terminal or turn the writing direction."""


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
    """Print JSON documents, one on each line; as `json` they make one list."""
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
    """Rows in columns as wide as they need to be; numbers stand to the right, and every text is made safe.

    On a terminal that is too narrow the last column stands below the others, or each row takes a line for each column.
    """
    columns = [*zip(titles, *rows, strict=True)]
    texts = [["-" if cell is None else printable(str(cell)) for cell in column] for column in columns]
    widths = [max(map(len, column)) for column in texts]
    numeric = [len(column) > 1 and all(isinstance(cell, int) for cell in column[1:]) for column in columns]
    width = _terminal_width()
    if width is not None and sum(widths[:-1]) + 2 * (len(widths) - 2) > width:
        yield from _one_below_the_other(texts, width)
        return
    is_wide = width is None or sum(widths) + 2 * (len(widths) - 1) <= width
    for line in zip(*texts, strict=True):
        cells = [t.rjust(w) if right else t.ljust(w) for t, w, right in zip(line, widths, numeric, strict=True)]
        if is_wide or width is None:
            yield "  ".join(cells).rstrip()
        else:
            yield "  ".join(cells[:-1]).rstrip()
            yield from _indented(line[-1], width)


def fold(head: str, text: str) -> Iterator[str]:
    """A line, or on a terminal that is too narrow for it the text below its head."""
    width = _terminal_width()
    if width is None or len(head) + 2 + len(text) <= width:
        yield f"{head}  {text}".rstrip()
    else:
        yield head.rstrip()
        yield from _indented(text, width)


def _one_below_the_other(texts: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    titles = [column[0] for column in texts]
    room = max(map(len, titles))
    for number, row in enumerate([*zip(*texts, strict=True)][1:]):
        if number:
            yield ""
        for title, text in zip(titles, row, strict=True):
            yield from _wrapped(text, width, f"{title:{room}}  ", " " * (room + 2)) or [title]


def _indented(text: str, width: int) -> list[str]:
    return _wrapped(text, width, _INDENT, _INDENT)


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    """Lines that break between words alone: a URL is to be copied as a whole."""
    return wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
