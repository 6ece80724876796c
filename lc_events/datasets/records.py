"""Where records end: lines of txt, records of csv (RFC 4180)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import accumulate, count
from operator import add
from typing import TYPE_CHECKING

from lc_events.datasets.source import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BOM", "CsvSplitter", "LineSplitter", "Split", "Splitter", "splitter_for"]

MAX_QUOTED_BYTES = 1 << 20
MAX_HEADER_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
_CR = 13

# A quote opens a quoted field only where a field begins (RFC 4180); elsewhere, as in 5" pipe, it is a character.
_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'
_FIELD = rb"(?:" + _QUOTED + rb'[^,\n]*+|(?!")[^,\n]*+)'
_quoted = re.compile(_QUOTED)
_to_field_end = re.compile(rb"[^,\n]*+")
_whole_fields = re.compile(rb"(?:" + _FIELD + rb",)*+")
# The empty alternative ends a search where no whole record follows; without it every later byte would be tried.
_record = re.compile(rb"(?:" + _FIELD + rb",)*+" + _FIELD + rb"\n|")


@dataclass(frozen=True, slots=True)
class Split:
    """What a block brought: `count` records came to their end.

    `data` are the bytes to keep, each record verbatim with a newline for its end; `ends` are the ends of the finished
    records in it. The first record may have begun in an earlier block, and bytes after the last end begin the next.
    Both are empty where records are only counted.
    """

    count: int
    data: bytes = b""
    ends: Sequence[int] = field(default=())


@dataclass(frozen=True, slots=True)
class _Scan:
    """In a buffer: where the last finished record ends, how far bytes can be given out, and all ends.

    `ends` is None where every newline before `last_end` is one.
    """

    last_end: int
    given: int
    ends: list[int] | None = None


class Splitter(ABC):
    """Splits the bytes of a file into records, block by block, holding back a bounded number of bytes.

    `offset` is where in the file the last finished record ended (or the header, or a byte order mark), `begin` where
    the first one began, `position` how far the blocks reached. After an `error` nothing more comes.
    """

    def __init__(self, *, offset: int, after_partial: bool = False, keep: bool = True) -> None:
        self.offset = offset
        self.begin = offset
        self.position = offset
        self.error: UnreadableError | None = None
        self.header: bytes | None = None
        self._keep = keep
        self._held = b""
        self._at_start = offset == 0
        self._after_partial = after_partial

    @property
    def has_partial(self) -> bool:
        """Whether bytes after the last finished record wait for their end."""
        return self.position > self.offset

    def can_finish(self) -> bool:
        """Whether the partial last line may be taken for a record; a line end or a quote that is half there may not."""
        begun = self.has_partial and not (self._at_start or self._after_partial)
        return begun and self.error is None and self.open_quote() is None

    def open_quote(self) -> int | None:
        """Offset in the file of the quote of a field that has not ended yet."""
        return None

    def feed(self, block: bytes) -> Split:
        """Split the bytes that follow the last block. Trouble with them is left in `error`."""
        if self.error is not None:
            return Split(0)
        self.position += len(block)
        buffer = self._begun(self._held + block)
        if not buffer:
            return Split(0)
        base = self.position - len(buffer)
        scan = self._scan(buffer, base)
        self._held = buffer[scan.given :]
        if scan.last_end:
            self.offset = base + scan.last_end
        body = buffer[: scan.last_end]
        if not self._keep:
            return Split(body.count(b"\n") if scan.ends is None else len(scan.ends))
        body, ends = _plain_ends(body) if scan.ends is None else _normalised(body, scan.ends)
        return Split(len(ends), body + buffer[scan.last_end : scan.given], ends)

    def finish(self) -> Split:
        """Take the partial last line for a record. If it goes on later, the rest is a record of its own."""
        rest = self._held.removesuffix(b"\r") + b"\n"
        self._held = b""
        self._after_partial = True
        self.offset = self.position
        return Split(1, rest, (len(rest),)) if self._keep else Split(1)

    def _begun(self, buffer: bytes) -> bytes:
        """Drop a byte order mark, or the line end of a record that was counted without it; b"" if it is half there."""
        for awaited in [BOM] if self._at_start else [b"\r\n", b"\n"] if self._after_partial else []:
            if buffer.startswith(awaited):
                buffer = buffer.removeprefix(awaited)
                self.offset = self.begin = self.position - len(buffer)
                self._held = b""
                break
            if awaited.startswith(buffer):
                self._held = buffer
                return b""
        self._at_start = self._after_partial = False
        return buffer

    @abstractmethod
    def _scan(self, buffer: bytes, base: int) -> _Scan:
        """Find the ends of records in what follows the bytes given out so far; `base` is its offset in the file."""


class LineSplitter(Splitter):
    r"""A txt file: every line is a record, blank ones too; only `\n` and `\r\n` end a line."""

    def _scan(self, buffer: bytes, base: int) -> _Scan:  # noqa: ARG002 - no line can be wrong
        return _Scan(buffer.rfind(b"\n") + 1, len(buffer) - buffer.endswith(b"\r"))


class CsvSplitter(Splitter):
    """A csv file after RFC 4180, divided by commas: the first record is the header and not counted."""

    def __init__(self, *, offset: int, after_partial: bool = False, keep: bool = True) -> None:
        super().__init__(offset=offset, after_partial=after_partial, keep=keep)
        self._in_header = offset == 0
        self._in_field = False

    def can_finish(self) -> bool:
        """See `Splitter.can_finish`; a header without its line end is never taken, as no record waits for it."""
        return not self._in_header and super().can_finish()

    def open_quote(self) -> int | None:
        """See `Splitter.open_quote`."""
        start = _end(_whole_fields, self._held, 0) if self._in_header else 0
        if self._held.startswith(b'"', start) and not _quoted.match(self._held, start):
            return self.position - len(self._held) + start
        return None

    def _begun(self, buffer: bytes) -> bytes:
        buffer = super()._begun(buffer)
        if not self._in_header or not buffer:
            return buffer
        end = _end(_record, buffer, 0)
        if not end:
            self._held = buffer
            if len(buffer) > MAX_HEADER_BYTES:
                quote = self.open_quote()
                self.error = (
                    UnreadableError(f"the csv header has not ended after {MAX_HEADER_BYTES} bytes", code="csv_header")
                    if quote is None
                    else _too_long(quote)
                )
            return b""
        self.header = buffer[: end - 1].removesuffix(b"\r")
        self._in_header = False
        self._held = b""
        self.offset = self.begin = self.position - len(buffer) + end
        return buffer[end:]

    def _scan(self, buffer: bytes, base: int) -> _Scan:
        """Find records; between two blocks either a field has just begun, or an unquoted part of one goes on."""
        start = 0
        ends = []
        if self._in_field:
            start = _end(_to_field_end, buffer, 0)
            if start == len(buffer):
                return _Scan(0, start - buffer.endswith(b"\r"))
            start += 1
            if buffer.startswith(b"\n", start - 1):
                ends.append(start)
        if buffer.find(b'"', start) < 0:
            last_end = buffer.rfind(b"\n") + 1
            self._in_field = max(last_end, start, buffer.rfind(b",") + 1) < len(buffer)
            return _Scan(last_end, len(buffer) - buffer.endswith(b"\r"))
        end = start
        for match in _record.finditer(buffer, start):
            next_end = match.end()
            if next_end == end or (
                next_end - end > MAX_QUOTED_BYTES and not self._accepts(buffer, base, end, next_end)
            ):
                break
            end = next_end
            ends.append(end)
        field_start = _end(_whole_fields, buffer, end)
        last_end = ends[-1] if ends else 0
        if not self._accepts(buffer, base, end, field_start):
            return _Scan(last_end, last_end, ends)
        self._in_field = field_start < len(buffer)
        if buffer.startswith(b'"', field_start):
            quoted = _quoted.match(buffer, field_start)
            quote_end = quoted.end() if quoted else len(buffer)
            if quote_end - field_start > MAX_QUOTED_BYTES:
                self.error = _too_long(base + field_start)
                return _Scan(last_end, last_end, ends)
            # A quote that ends the buffer may be the first of a doubled one.
            self._in_field = quote_end < len(buffer)
        given = len(buffer) - buffer.endswith(b"\r") if self._in_field else field_start
        return _Scan(last_end, given, ends)

    def _accepts(self, buffer: bytes, base: int, start: int, end: int) -> bool:
        """Whether no quoted field between a field's start and the end of another is too long; sets `error` if one is.

        The size of a block must not decide about that, so what was found whole is measured too.
        """
        while end - start > MAX_QUOTED_BYTES:
            if quoted := _quoted.match(buffer, start, end):
                if quoted.end() - start > MAX_QUOTED_BYTES:
                    self.error = _too_long(base + start)
                    return False
                start = quoted.end()
            start = _end(_to_field_end, buffer, start) + 1
        return True


def splitter_for(format_name: str, *, offset: int, after_partial: bool = False, keep: bool = True) -> Splitter:
    """Splitter of a dataset's format, `txt` or `csv` in any case, from a byte offset at which a record begins.

    `after_partial`: the record before the offset was counted without its line end. `keep=False` counts only.
    Raises `UnreadableError` with code `unsupported`.
    """
    kinds: dict[str, type[Splitter]] = {"txt": LineSplitter, "csv": CsvSplitter}
    kind = kinds.get(format_name.lower())
    if kind is None:
        raise UnreadableError(
            f"datasets of format {format_name!r} are not supported, use txt or csv", code="unsupported"
        )
    return kind(offset=offset, after_partial=after_partial, keep=keep)


def _plain_ends(body: bytes) -> tuple[bytes, list[int]]:
    """Lines with newlines for ends, and where each ends; `body` is empty or ends with a newline."""
    if b"\r" not in body:
        return body, list(accumulate(map(len, body.splitlines(keepends=True))))
    body = body.replace(b"\r\n", b"\n")
    lines = body.split(b"\n")
    lines.pop()
    return body, list(map(add, accumulate(map(len, lines)), count(1)))


def _normalised(body: bytes, ends: list[int]) -> tuple[bytes, list[int]]:
    """Records with newlines for ends, what is inside of them untouched."""
    if b"\r\n" not in body:
        return body, ends
    pieces = []
    shorter_ends = []
    start = removed = 0
    for end in ends:
        if end > 1 and body[end - 2] == _CR:
            pieces += [body[start : end - 2], b"\n"]
            removed += 1
        else:
            pieces.append(body[start:end])
        shorter_ends.append(end - removed)
        start = end
    return b"".join(pieces), shorter_ends


def _end(pattern: re.Pattern[bytes], buffer: bytes, start: int) -> int:
    """Where the match of a pattern that also matches nothing ends."""
    match = pattern.match(buffer, start)
    return match.end() if match else start


def _too_long(offset: int) -> UnreadableError:
    return UnreadableError(
        f"the quoted field that begins at byte {offset} has not ended after {MAX_QUOTED_BYTES} bytes: "
        "a quote is missing or one too many",
        code="csv_quote",
    )
