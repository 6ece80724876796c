from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain, takewhile
from operator import lt
from typing import TYPE_CHECKING

from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

__all__ = ["WIDTH", "Segment", "lost_records"]

WIDTH = 8
"""Bytes of an entry of the index: where a record ends in the data."""
_ENTRIES = 1 << 17
_CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class Segment:
    """A piece of a spool: records `first` to `first + count`, a file of their bytes (`size`), one of their ends.

    `size` is above the end of the last record while another one has begun. What is no regular file counts as not there.
    Every method raises `OSError`.
    """

    folder: Path
    first: int
    count: int = 0
    size: int = 0

    @classmethod
    def found(cls, folder: Path, first: int) -> Segment:
        """A segment as it lies on disk: the records that are whole in both of its files, from the first one on.

        Of ends that grow up to the last one no more is looked at.
        """
        segment = cls(folder, first)
        count, size = _size(segment.index) // WIDTH, _size(segment.data)
        if count and not max(segment.end(count - 1) + 1, count) <= segment.end(count) <= size:
            growing = segment.growing(0, count)
            count = bisect_right(range(1, growing + 1), size, key=segment.end)
        segment.count, segment.size = count, segment.end(count)
        return segment

    @property
    def last(self) -> int:
        """The number behind its last record."""
        return self.first + self.count

    @property
    def data(self) -> Path:
        """The file of the records' bytes."""
        return self.folder / f"{self.first:020d}.data"

    @property
    def index(self) -> Path:
        """The file of the records' ends."""
        return self.folder / f"{self.first:020d}.index"

    def end(self, count: int) -> int:
        """Where the first `count` records end in the data; FileNotFoundError if the index does not say."""
        if count == 0:
            return 0
        with _open_regular(self.index) as file:
            file.seek((count - 1) * WIDTH)
            entry = file.read(WIDTH)
        if len(entry) < WIDTH:
            raise FileNotFoundError(errno.ENOENT, f"{self.index} ends before entry {count}")
        return int.from_bytes(entry, "little")

    def growing(self, first: int, last: int) -> int:
        """Up to which count, `last` at most, each record from `first` on ends behind the one before, as it must."""
        end = self.end(first)
        with _open_regular(self.index) as file:
            file.seek(first * WIDTH)
            while first < last and (ends := _entries(file.read(min(last - first, _ENTRIES) * WIDTH))):
                growing = sum(takewhile(bool, map(lt, chain((end,), ends), ends)))
                first += growing
                if growing < len(ends):
                    break
                end = ends[-1]
        return first

    def read(self, first: int, last: int, *, below: int) -> Iterator[bytes]:
        """Bytes of the records [first, last), in chunks; `StorageError` (`lost`, `damaged`) if they are not as written.

        The record behind them tells if they end too far; it is asked if it is `below` a number.
        """
        damaged = StorageError(
            f"records {first} to {last} are not as they were written to the spool {self.data} and its index",
            code="damaged",
        )
        behind = max(last, min(last + 1, self.last, below)) - self.first
        try:
            if self.growing(max(first - self.first - 1, 0), behind) < behind:
                raise damaged
            start, end = self.end(first - self.first), self.end(last - self.first)
            file = _open_regular(self.data)
        except FileNotFoundError:
            raise lost_records(self.data, first, last) from None
        with file:
            if end > os.fstat(file.fileno()).st_size:
                raise lost_records(self.data, first, last)
            file.seek(max(start - 1, 0))
            chunk = file.read(1) if start else b"\n"
            if chunk != b"\n":
                raise damaged
            newlines = 0
            while start < end:
                chunk = file.read(min(_CHUNK_BYTES, end - start))
                if not chunk:
                    raise lost_records(self.data, first, last)
                start += len(chunk)
                newlines += chunk.count(b"\n")
                yield chunk
        if newlines < last - first or not chunk.endswith(b"\n"):
            raise damaged

    def is_whole(self) -> bool:
        """Whether both files are still as long as they must be."""
        return _size(self.index) >= self.count * WIDTH and _size(self.data) >= self.size

    def cut(self, count: int) -> None:
        """Keep the first `count` records, and nothing of one that had begun."""
        self.count, self.size = count, self.end(count)
        _shorten(self.index, count * WIDTH)
        _shorten(self.data, self.size)

    def extend(self, other: Segment) -> None:
        """Take over what another piece, of the same records from the first one on, holds beyond the last one here."""
        _copy_rest(other.data, self.data, self.size)
        _copy_rest(other.index, self.index, self.count * WIDTH)

    def make_way(self) -> None:
        """Move folders that have the names of its files aside: they are not ours to delete."""
        for path in (self.data, self.index):
            if path.is_dir() and not path.is_symlink():
                path.rename(tempfile.mkdtemp(prefix=f"{path.name}.", suffix=".aside", dir=self.folder))

    def remove(self) -> None:
        """Delete both files."""
        self.make_way()
        self.data.unlink(missing_ok=True)
        self.index.unlink(missing_ok=True)


def lost_records(where: Path, first: int, last: int) -> StorageError:
    """What there is to say of records [first, last) that a spool does not have any more."""
    return StorageError(
        f"records {first} to {last} are not in the spool {where}: its files were lost, cut or overwritten", code="lost"
    )


def _open_regular(path: Path) -> FileIO:
    """Open a file for reading, without waiting for anybody; FileNotFoundError for what is no regular file."""
    try:
        # Without O_NONBLOCK a named pipe would hold the caller until somebody writes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in {errno.ENXIO, errno.ELOOP}:
            raise
        raise _no_file(path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(path)
    return open(descriptor, "rb", buffering=0)  # noqa: PTH123 - a descriptor has no path


def _no_file(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "is no regular file", str(path))


def _entries(data: bytes) -> array[int]:
    ends = array("Q", data[: len(data) // WIDTH * WIDTH])
    if sys.byteorder != "little":
        ends.byteswap()
    return ends


def _size(path: Path) -> int:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    except OSError as error:
        if error.errno == errno.ELOOP:
            return 0
        raise
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _shorten(path: Path, size: int) -> None:
    """Cut a file; one that is shorter already stays short, so that a loss is seen and not filled with zeros."""
    if _size(path) > size:
        os.truncate(path, size)


def _copy_rest(source: Path, target: Path, offset: int) -> None:
    with _open_regular(source) as old, target.open("ab") as new:
        old.seek(offset)
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())
