"""A piece of a spool on disk: a file of the bytes of its records, and one that says how each of them must end."""

from __future__ import annotations

import errno
import logging
import os
import stat
import tempfile
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from lc_events.errors import StorageError
from lc_events.files import open_to_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from lc_events.datasets.ranges import Range

__all__ = ["GONE", "Segment", "lost_records"]

GONE = frozenset({"lost", "damaged"})
"""Codes of a `StorageError` about records that are not in a spool any more, or not as they were written."""

_log = logging.getLogger("lc_events.datasets")

_ENTRY = Struct("=QII")
"""Of the index, for each record: its end in the data, how many records that makes, CRC-32 of the data up to there."""
_CHUNK_BYTES = 1 << 20
_DAMAGE_GRAIN = 64
"""Records; which of so few are damaged is not looked for."""
_SECTOR_BYTES = 4096


@dataclass(slots=True)
class Segment:
    """Records `first` to `first + count` of a dataset's spool, `size` bytes of data with the CRC-32 `crc`.

    Records between any two of its ends can be checked without the others. The data may go on with a record that has
    begun. What is no regular file, or cannot be read from the disk (EIO), counts as not there. Methods raise `OSError`.
    """

    folder: Path
    first: int
    of: str
    count: int = 0
    size: int = 0
    has_begun: bool = False
    crc: int = field(init=False)

    def __post_init__(self) -> None:
        """Checksums begin with what the records are of, and their first number: other files by that name are seen."""
        self.crc = self._entry(0)[2]

    @classmethod
    def found(cls, folder: Path, first: int, of: str) -> Segment:
        """A segment as it lies on disk, with the records that both of its files are long enough for."""
        segment = cls(folder, first, of)
        count, size = _size(segment.index) // _ENTRY.size, _size(segment.data)

        def is_unusable(count: int) -> bool:
            try:
                end, records, _ = segment._entry(count)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return True
            return not count <= end <= size or records != count  # each record has a newline at least

        if is_unusable(count):
            count = bisect_left(range(count), True, key=is_unusable) - 1
        segment._keep(count)
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
        """The file that says where the records end."""
        return self.folder / f"{self.first:020d}.index"

    @property
    def index_size(self) -> int:
        """Bytes that the index must have."""
        return self.count * _ENTRY.size

    def add(self, data: bytes, ends: Sequence[int], start: int) -> bytes:
        """Count in what is appended to the data; what is appended to the index.

        Records end at `ends`, of which `start` is where `data` begins.
        """
        cuts = [0, *(end - start for end in ends)]
        crc = self.crc
        crcs = [crc := crc32(data[begin:end], crc) for begin, end in pairwise(cuts)]
        entries = _entries([self.size + cut for cut in cuts[1:]], self.count + 1, crcs)
        self.crc = crc32(data[cuts[-1] :], crc)
        self.has_begun = cuts[-1] < len(data) or (self.has_begun and not ends)
        self.count += len(crcs)
        self.size += len(data)
        return entries

    def read(self, first: int, last: int) -> Iterator[bytes]:
        """Bytes of the records [first, last), in chunks; `StorageError` (`lost`, `damaged`) if they are not as written.

        Only at the end is known that they are: what came before an error is of no use.
        """
        damaged = StorageError(
            f"{_records(first, last)} not as written to the spool {self.data} and its index",
            code="damaged",
        )
        try:
            at, begun, crc = self._entry(first - self.first)
            end, ended, expected = self._entry(last - self.first)
            if (begun, ended) != (first - self.first, last - self.first) or at > end:
                raise damaged
            with _open_regular(self.data) as file:
                if end > os.fstat(file.fileno()).st_size:
                    raise lost_records(self.data, first, last)
                file.seek(at)
                while at < end and (chunk := file.read(min(_CHUNK_BYTES, end - at))):
                    at, crc = at + len(chunk), crc32(chunk, crc)
                    yield chunk
        except FileNotFoundError:
            raise lost_records(self.data, first, last) from None
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise damaged from error
        if (at, crc) != (end, expected):
            raise damaged

    def is_intact(self, first: int, last: int) -> bool:
        """Whether the records [first, last) are there as they were written."""
        try:
            for _ in self.read(first, last):
                pass
        except StorageError:
            return False
        return True

    def damage(self, first: int, last: int) -> Iterator[Range]:
        """Which of the records [first, last) are not there as they were written, up to 64 more on either side."""
        if first < last and not self.is_intact(first, last):
            if last - first <= _DAMAGE_GRAIN:
                yield first, last
            else:
                middle = (first + last) // 2
                yield from self.damage(first, middle)
                yield from self.damage(middle, last)

    def is_whole(self) -> bool:
        """Whether both files are still as long as they must be."""
        return _size(self.index) >= self.index_size and _size(self.data) >= self.size

    def cut(self, count: int) -> None:
        """Keep the first `count` records, and nothing of one that had begun.

        Where the last of them is not as it was written, nobody knows where it ends: it is not kept, no data goes, and
        nothing may be added any more.
        """
        _shorten(self.index, count * _ENTRY.size)
        if self.is_intact(self.first + count - 1, self.first + count):
            self._keep(count)
            _shorten(self.data, self.size)
        else:
            self.count = count - 1

    def extend(self, other: Segment) -> None:
        """Take over what another piece, of the same records from the first one on, holds beyond the last one here."""
        _copy_rest(other.data, self.data, self.size)
        _copy_rest(other.index, self.index, self.index_size)

    def make_way(self) -> None:
        """Move folders that have the names of its files aside: they are not ours to delete."""
        for path in (self.data, self.index):
            if path.is_dir() and not path.is_symlink():
                aside = tempfile.mkdtemp(prefix=f"{path.name}.", suffix=".aside", dir=self.folder)
                path.rename(aside)
                _log.warning("a folder has the name of a file of the spool: it was moved to %s", aside)

    def remove(self) -> None:
        """Delete both files."""
        self.make_way()
        self.data.unlink(missing_ok=True)
        self.index.unlink(missing_ok=True)

    def _keep(self, count: int) -> None:
        self.size, self.count, self.crc = self._entry(count)
        self.has_begun = False

    def _entry(self, count: int) -> tuple[int, int, int]:
        if count == 0:
            return 0, 0, crc32(f"{self.of} {self.first}".encode())
        with _open_regular(self.index) as file:
            file.seek((count - 1) * _ENTRY.size)
            entry = file.read(_ENTRY.size)
        if len(entry) < _ENTRY.size:
            raise FileNotFoundError(errno.ENOENT, f"{self.index} ends before entry {count}")
        end, records, crc = _ENTRY.unpack(entry)
        return end, records, crc


def _entries(ends: Sequence[int], count: int, crcs: Sequence[int]) -> bytes:
    """Entries from number `count` on, put together by column: to pack them one by one takes twice as long."""
    halves = array("I", array("Q", ends).tobytes())
    entries = array("I", bytes(len(ends) * _ENTRY.size))
    entries[0::4], entries[1::4] = halves[0::2], halves[1::2]
    entries[2::4] = array("I", range(count, count + len(ends)))
    entries[3::4] = array("I", crcs)
    return entries.tobytes()


def lost_records(where: Path, first: int, last: int) -> StorageError:
    """What there is to say of records [first, last) that a spool does not have any more."""
    return StorageError(
        f"{_records(first, last)} not in the spool {where}: its files were lost, cut or overwritten", code="lost"
    )


def _records(first: int, last: int) -> str:
    return f"record {first} is" if last == first + 1 else f"records {first} to {last - 1} are"


def _open_regular(path: Path) -> FileIO:
    """Open a file for reading, without waiting for anybody; FileNotFoundError for what is no regular file."""
    try:
        descriptor = open_to_read(path)
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
        size = os.fstat(old.fileno()).st_size
        for at in range(offset, size, _SECTOR_BYTES):
            old.seek(at)
            try:
                new.write(old.read(_SECTOR_BYTES))
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                new.write(bytes(min(_SECTOR_BYTES, size - at)))  # which the checksums tell as damaged
        new.flush()
        os.fsync(new.fileno())
