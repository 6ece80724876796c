"""What a program prints: the newest of it in a file of bounded size, its last lines for the report."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

__all__ = ["CapturedOutput"]

_FILE_BYTES = 1_048_576
_TAIL_BYTES = 4096
_TAIL_LINES = 20
_SHORTEST_SECRET = 4
_LINE_END = re.compile(r"[\r\n]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_log = logging.getLogger(__name__)


class CapturedOutput:
    """Reads a pipe to its end into `path`; a full file becomes `path`.1, so that 1 to 2 MiB are kept."""

    def __init__(self, path: Path, *, file_bytes: int = _FILE_BYTES) -> None:
        self._path = path
        self._file_bytes = file_bytes
        self._file: BinaryIO | None = None
        self._written = 0
        self._tail = b""
        self._cut = False

    def read(self, pipe: BinaryIO) -> None:
        """Read until the last writer closes the pipe; an output that cannot be stored does not hold up the program."""
        storable = True
        while chunk := os.read(pipe.fileno(), 65_536):
            self._cut |= len(self._tail) + len(chunk) > 2 * _TAIL_BYTES
            self._tail = (self._tail + chunk)[-2 * _TAIL_BYTES :]
            if storable:
                try:
                    self._store(chunk)
                except OSError as error:
                    storable = False
                    _log.warning("%s ends here: %s", self._path, error)
        if self._file:
            self._file.close()

    def last_lines(self, secrets: Iterable[str] = ()) -> str:
        """At most 20 lines and 4 KiB of UTF-8, without control characters; each secret is replaced by ***."""
        tail = self._tail[self._tail.find(b"\n") + 1 :] if self._cut else self._tail
        text = tail.decode(errors="replace")
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        lines = [_CONTROL.sub("", line).rstrip() for line in _LINE_END.split(text)]
        kept = "\n".join([line for line in lines if line][-_TAIL_LINES:])
        return kept.encode()[-_TAIL_BYTES:].decode(errors="ignore")

    def _store(self, chunk: bytes) -> None:
        if self._file and self._written + len(chunk) > self._file_bytes:
            self._file.close()
            self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._file = None
        if self._file is None:
            self._file, self._written = self._path.open("wb", buffering=0), 0
        self._written += self._file.write(chunk)
