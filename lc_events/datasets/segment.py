from __future__ import annotations

import errno
import os
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["WIDTH", "Segment"]

WIDTH = 8
"""Bytes of an entry of the index: where a record ends in the data."""


@dataclass(slots=True)
class Segment:
    """A piece of a spool: records `first` to `first + count`, a file of their bytes (`size`), one of their ends.

    `size` is above the end of the last record while another one has begun. Every method raises `OSError`.
    """

    folder: Path
    first: int
    count: int = 0
    size: int = 0

    @classmethod
    def found(cls, folder: Path, first: int) -> Segment:
        """A segment as it lies on disk: the records that are whole in both of its files, from the first one on."""
        segment = cls(folder, first)
        count, size = _size(segment.index) // WIDTH, _size(segment.data)
        if (end := segment.end(count)) > size:
            count = bisect_right(range(1, count + 1), size, key=segment.end)
        elif end < count:
            count = 0  # each record has a newline at least: these are no ends of records
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
        with self.index.open("rb", buffering=0) as file:
            file.seek((count - 1) * WIDTH)
            entry = file.read(WIDTH)
        if len(entry) < WIDTH:
            raise FileNotFoundError(errno.ENOENT, f"{self.index} ends before entry {count}")
        return int.from_bytes(entry, "little")

    def is_whole(self) -> bool:
        """Whether both files are still as long as they must be."""
        return _size(self.index) >= self.count * WIDTH and _size(self.data) >= self.size

    def cut(self, count: int) -> None:
        """Keep the first `count` records, and nothing of one that had begun."""
        self.count, self.size = count, self.end(count)
        _shorten(self.index, count * WIDTH)
        _shorten(self.data, self.size)

    def remove(self) -> None:
        """Delete both files."""
        self.data.unlink(missing_ok=True)
        self.index.unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _shorten(path: Path, size: int) -> None:
    """Cut a file; one that is shorter already stays short, so that a loss is seen and not filled with zeros."""
    if _size(path) > size:
        os.truncate(path, size)
