from __future__ import annotations

import contextlib
import os
import sys
import threading
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lc_events.errors import StorageError
from lc_events.faults import reach

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

__all__ = ["Spool"]

CHUNK_BYTES = 1 << 20
SEGMENT_BYTES = 64 << 20
_WIDTH = 8


@dataclass(slots=True)
class _Segment:
    """Records `first` to `first + count`: a file of their bytes (`size`), and one of 8-byte end offsets."""

    first: int
    count: int
    size: int

    @property
    def last(self) -> int:
        return self.first + self.count


class Spool:
    """Records of one dataset kept until no job needs them, numbered 0, 1, 2 … for ever; a number is never used again.

    What is appended counts once the caller has committed its length elsewhere and called `commit`; at start `cut`
    takes the spool to the committed length, after a failed commit back to it. Any thread may call; appends come from
    one at a time. Every method raises `StorageError`. Where files were lost the spool goes on after the next `cut`;
    only the lost records cannot be read.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._lock = threading.RLock()
        self._files: tuple[int, int] | None = None
        self._unsynced: set[Path] = set()
        with _explained(folder):
            self._segments = self._found()
        self._length = self._segments[-1].last if self._segments else 0
        self._committed = self._length

    @property
    def length(self) -> int:
        """Number the next record gets."""
        return self._length

    @property
    def committed(self) -> int:
        """How many records count: the length at the last `cut` or `commit`."""
        return self._committed

    @property
    def first(self) -> int:
        """Lowest number still kept; `length` when none is."""
        with self._lock:
            return self._segments[0].first if self._segments else self._length

    def append(self, data: bytes, ends: Sequence[int]) -> tuple[int, int]:
        """Add records, each ended by a newline; `ends` are their ends in `data`. Returns their numbers [first, last).

        Bytes after the last end begin a record that a later call goes on with; `cut` drops them.
        """
        with self._lock, _explained(self._folder), contextlib.ExitStack() as half_written:
            # Closed files are checked when they are opened again: no append can follow one that failed half-way.
            half_written.callback(self._close, sync=False)
            begin = self._length
            if not self._segments:
                self._begin_segment()
            if ends and self._segments[-1].size >= self._segment_bytes:
                head = ends[0]
                self._extend(data[:head], ends[:1])
                self._close(sync=True)
                self._begin_segment()
                data, ends = data[head:], [end - head for end in ends[1:]]
            self._extend(data, ends)
            half_written.pop_all()
            reach("spool-appended")
            return begin, self._length

    def sync(self) -> None:
        """Make all that was appended survive a power cut; to be called before the commit that counts it."""
        with self._lock, _explained(self._folder):
            self._close(sync=True)
            for folder in sorted(self._unsynced, reverse=True):
                _sync_folder(folder)
            self._unsynced.clear()
            reach("spool-synced")

    def commit(self) -> None:
        """What was appended counts: the caller has committed the length."""
        self._committed = self._length

    def cut(self, length: int) -> None:
        """Go back to `length` records; the next one gets this number, even if earlier ones were lost."""
        with self._lock, _explained(self._folder):
            self._close(sync=False)
            found = self._found()
            for segment in found:
                if segment.first >= length:
                    self._remove(segment)
            self._segments = [segment for segment in found if segment.first < length]
            self._length = self._committed = length
            if self._segments:
                last = self._segments[-1]
                last.count = min(last.count, length - last.first)
                last.size = self._end(last, last.count)
                _shorten(self._index_path(last), last.count * _WIDTH)
                _shorten(self._data_path(last), last.size)
                if last.last < length or _size(self._data_path(last)) < last.size:
                    self._begin_segment()

    def trim(self, below: int) -> None:
        """Let go of committed records below a number; files go whole, so some of them stay readable for a while."""
        with self._lock, _explained(self._folder):
            below = min(below, self._committed)
            firsts = [segment.first for segment in self._segments]
            for segment, end in zip(list(self._segments), [*firsts[1:], self._length], strict=False):
                is_open = segment is self._segments[-1] and segment.size > self._end(segment, segment.count)
                if end > below or is_open:
                    return
                if segment is self._segments[-1]:
                    self._close(sync=False)
                self._segments.remove(segment)
                self._remove(segment)

    def read(self, first: int, last: int) -> Iterator[bytes]:
        """Bytes of the records [first, last), in chunks; raises `StorageError` where one of them is lost."""
        with self._lock:
            segments = [_Segment(segment.first, segment.count, segment.size) for segment in self._segments]
        at = bisect_right([segment.first for segment in segments], first) - 1
        while first < last:
            if not 0 <= at < len(segments) or not segments[at].first <= first < segments[at].last:
                raise self._lost(first, last)
            end = min(last, segments[at].last)
            yield from self._read_segment(segments[at], first, end)
            first = end
            at += 1

    def _read_segment(self, segment: _Segment, first: int, last: int) -> Iterator[bytes]:
        with _explained(self._folder):
            try:
                start = self._end(segment, first - segment.first)
                end = self._end(segment, last - segment.first)
                file = self._data_path(segment).open("rb", buffering=0)
            except FileNotFoundError:
                raise self._lost(first, last) from None
        with file:
            file.seek(start)
            while start < end:
                with _explained(self._folder):
                    chunk = file.read(min(CHUNK_BYTES, end - start))
                if not chunk:
                    raise self._lost(first, last)
                start += len(chunk)
                yield chunk

    def _end(self, segment: _Segment, count: int) -> int:
        """Where the first `count` records of a segment end in its data."""
        if count == 0:
            return 0
        with self._index_path(segment).open("rb", buffering=0) as file:
            file.seek((count - 1) * _WIDTH)
            entry = file.read(_WIDTH)
        if len(entry) < _WIDTH:
            raise self._lost(segment.first, segment.first + count)
        return int.from_bytes(entry, "little")

    def _lost(self, first: int, last: int) -> StorageError:
        return StorageError(
            f"records {first} to {last} are not in the spool {self._folder}: its files were lost or cut", code="lost"
        )

    def _found(self) -> list[_Segment]:
        """Segments as they lie on disk; an incomplete index entry at the end is not counted."""
        if not self._folder.is_dir():
            return []
        names = [path for path in self._folder.iterdir() if path.suffix in {".data", ".index"}]
        firsts = {int(path.stem) for path in names if path.stem.isdecimal()}
        segments = [_Segment(first, 0, 0) for first in sorted(firsts)]
        for segment in segments:
            segment.count = _size(self._index_path(segment)) // _WIDTH
            segment.size = _size(self._data_path(segment))
        return segments

    def _begin_segment(self) -> None:
        folder = self._folder
        while not folder.is_dir():
            self._unsynced.add(folder.parent)
            folder = folder.parent
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._unsynced.add(self._folder)
        self._segments.append(_Segment(self._length, 0, 0))

    def _extend(self, data: bytes, ends: Sequence[int]) -> None:
        segment = self._segments[-1]
        if self._files is None:
            self._files = self._open(segment)
        data_file, index_file = self._files
        _write_all(data_file, data)
        if ends:
            base = segment.size
            index = array("Q", [end + base for end in ends])
            if sys.byteorder != "little":
                index.byteswap()
            _write_all(index_file, index.tobytes())
        segment.size += len(data)
        segment.count += len(ends)
        self._length += len(ends)

    def _open(self, segment: _Segment) -> tuple[int, int]:
        """Open a segment for appending; its files must still hold what was written to them."""
        with contextlib.ExitStack() as undo:
            files = []
            for path, size in (
                (self._data_path(segment), segment.size),
                (self._index_path(segment), segment.count * _WIDTH),
            ):
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                undo.callback(os.close, descriptor)
                if os.fstat(descriptor).st_size != size:
                    raise self._lost(segment.first, self._length)
                files.append(descriptor)
            undo.pop_all()
        return files[0], files[1]

    def _close(self, *, sync: bool) -> None:
        files, self._files = self._files, None
        try:
            if sync:
                for descriptor in files or ():
                    os.fsync(descriptor)
        finally:
            for descriptor in files or ():
                os.close(descriptor)

    def _remove(self, segment: _Segment) -> None:
        self._data_path(segment).unlink(missing_ok=True)
        self._index_path(segment).unlink(missing_ok=True)

    def _data_path(self, segment: _Segment) -> Path:
        return self._folder / f"{segment.first:020d}.data"

    def _index_path(self, segment: _Segment) -> Path:
        return self._folder / f"{segment.first:020d}.index"


@contextlib.contextmanager
def _explained(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"spool {folder}: {error.strerror or error}") from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _shorten(path: Path, size: int) -> None:
    """Cut a file; one that is shorter already stays short, so that a loss is seen and not filled with zeros."""
    if _size(path) > size:
        os.truncate(path, size)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
