"""Records of a dataset on their way from its file to the jobs, kept until no job needs them."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
import stat
import threading
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

from lc_events.datasets.ranges import Range, gaps, merged
from lc_events.datasets.segment import GONE, Segment, lost_records
from lc_events.errors import StorageError
from lc_events.faults import reach
from lc_events.files import sync_folder, write_all

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

__all__ = ["Spool"]

SEGMENT_BYTES = 64 << 20
_RESTORED = "restored"


class Spool:
    """Records of one dataset kept until no job needs them, numbered 0, 1, 2 … for ever; a number is never used again.

    What is appended counts once the caller has committed its length elsewhere and called `commit`; at start `cut`
    takes the spool to the committed length, after a failed commit back to it. Any thread may call; appends come from
    one at a time. Every method raises `StorageError`. Where files were lost the spool goes on after the next `cut`;
    only the lost records cannot be read, until they are restored.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, of: str | None = None) -> None:
        """`of` is what the records are of, in words: by default the last two names of the folder."""
        self._folder = folder
        self._of = "/".join(folder.parts[-2:]) if of is None else of
        self._segment_bytes = segment_bytes
        self._lock = threading.RLock()
        self._files: tuple[int, int] | None = None
        self._unsynced: set[Path] = set()
        self._begins: frozenset[int] = frozenset()
        """Numbers at which a segment must begin, however small the one before is."""
        self._damaged: dict[int, list[Range]] = {}
        """By the first of a segment, records that a read found not to be there as they were written."""
        with _explained(folder):
            self._segments = self._found()
        self._length = max((segment.last for segment in self._segments), default=0)
        self._committed = self._length

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self._folder

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

    def append(self, data: bytes, ends: Sequence[int]) -> Range:
        """Add records, each ended by a newline; `ends` are their ends in `data`. Returns their numbers [first, last).

        Bytes after the last end begin a record that a later call goes on with; `cut` drops them.
        """
        with self._lock, _explained(self._folder), contextlib.ExitStack() as half_written:
            # Closed files are checked when they are opened again: no append can follow one that failed half-way.
            half_written.callback(self._close, sync=False)
            begin, done, start = self._length, 0, 0
            if not self._segments:
                self._begin_segment()
            for count in self._new_segments_after(len(ends)):
                self._extend(data[start : ends[count - 1]], ends[done:count], start)
                self._close(sync=True)
                self._begin_segment()
                done, start = count, ends[count - 1]
            self._extend(data[start:], ends[done:], start)
            half_written.pop_all()
            reach("spool-appended")
            return begin, self._length

    def sync(self) -> None:
        """Make all that was appended survive a power cut; to be called before the commit that counts it."""
        with self._lock, _explained(self._folder):
            self._close(sync=True)
            for folder in sorted(self._unsynced, reverse=True):
                sync_folder(folder)
            self._unsynced.clear()
            reach("spool-synced")

    def commit(self) -> None:
        """What was appended counts: the caller has committed the length."""
        self._committed = self._length

    def close(self) -> None:
        """Close its files; the next append opens them again."""
        with (
            self._lock,
            contextlib.suppress(OSError),
        ):  # which says that something was not written: nothing counts on it
            self._close(sync=False)

    def cut(self, length: int) -> None:
        """Go back to `length` records; the next one gets this number, even if earlier ones were lost."""
        with self._lock, _explained(self._folder):
            self._close(sync=False)
            _remove_folder(self._folder / _RESTORED)  # of a restoring that was killed
            found = self._found()
            for segment in found:
                if segment.first >= length:
                    segment.remove()
                    self._unsynced.add(self._folder)
            self._segments = [segment for segment in found if segment.first < length]
            self._length = self._committed = length
            for segment in self._segments:
                if segment.last >= length:
                    segment.cut(length - segment.first)
            if self._segments and self._segments[-1].last < length:
                self._begin_segment()  # what is left of the last one stays as it is
            self._damaged = {segment.first: self._still_damaged(segment) for segment in self._segments}

    def is_whole(self) -> bool:
        """Whether the files still hold all that they held at the last `cut` and got since."""
        with self._lock, _explained(self._folder):
            return all(segment.is_whole() for segment in self._segments)

    def lost(self, first: int, last: int) -> list[Range]:
        """Which of the records [first, last) cannot be read, as far as the last `cut` or a read has found."""
        with self._lock:
            return gaps((first, last), [piece for segment in self._segments for piece in self._intact(segment)])

    @contextlib.contextmanager
    def restoring(self, first: int) -> Generator[Spool]:
        """A spool to put lost records into, from number `first` on; after the `with` they are where they were.

        They take the place of all that is left of the same records; what is not committed goes, as with `cut`.
        """
        folder = self._folder / _RESTORED
        part = Spool(folder, segment_bytes=self._segment_bytes, of=self._of)
        try:
            part.cut(first)
            # Each segment here that begins within gets one of the same records to take its place: `read` prefers the
            # segment that begins last, and damage that nobody has read yet must not outlive the restoring.
            part._begins = frozenset(segment.first for segment in self._segments)
            yield part
            part.sync()
            with self._lock, _explained(self._folder):
                for segment in [each for each in part._segments if each.count]:
                    here = Segment.found(self._folder, segment.first, self._of)
                    if here.last > segment.last:
                        segment.extend(here)
                    here.make_way()
                    segment.data.replace(here.data)
                    reach("spool-data-restored")
                    segment.index.replace(here.index)
                    reach("spool-index-restored")
                sync_folder(self._folder)
                restored = [(first, part.length)]
                for damaged in self._damaged.values():
                    damaged[:] = [gap for each in damaged for gap in gaps(each, restored)]
                self.cut(self._committed)
        finally:
            part.close()
            _remove_folder(folder)

    def trim(self, below: int) -> None:
        """Let go of committed records below a number; files go whole, so some of them stay readable for a while."""
        with self._lock, _explained(self._folder):
            below = min(below, self._committed)
            firsts = [segment.first for segment in self._segments]
            for segment, end in zip(list(self._segments), [*firsts[1:], self._length], strict=False):
                is_open = segment is self._segments[-1] and segment.has_begun
                if max(end, segment.last) > below or is_open:
                    return
                if segment is self._segments[-1]:
                    self._close(sync=False)
                self._segments.remove(segment)
                segment.remove()

    def read(self, first: int, last: int) -> Iterator[bytes]:
        """Bytes of the records [first, last), in chunks; `StorageError` (`lost`, `damaged`) where one is gone.

        From then on all that is damaged of them counts as lost. What came before the error is of no use.
        """
        while first < last:
            end, segment = self._holder(first, last)
            if segment is None:
                raise lost_records(self._folder, first, end)
            try:
                with _explained(self._folder):
                    yield from segment.read(first, end)
            except StorageError as error:
                if error.code in GONE:
                    self.find_damage(first, last)
                raise
            first = end

    def find_damage(self, first: int, last: int) -> None:
        """Look through the records [first, last): what is not as it was written counts as lost from then on."""
        with _explained(self._folder):
            while first < last:
                end, segment = self._holder(first, last)
                damage = [] if segment is None else merged(segment.damage(first, end))
                if segment is not None and damage:
                    with self._lock:
                        self._damaged.setdefault(segment.first, []).extend(damage)
                else:
                    first = end

    def _holder(self, first: int, last: int) -> tuple[int, Segment | None]:
        """The segment to read record `first` from, and up to which number; None where nothing readable holds it.

        Of those that hold a record, as far as is known, it is the one that begins last.
        """
        with self._lock:
            at = bisect_right(self._segments, first, key=attrgetter("first"))
            if at < len(self._segments):
                last = min(last, self._segments[at].first)
            for segment in reversed(self._segments[:at]):
                for begin, end in reversed(self._intact(segment)):
                    if begin <= first < end:
                        return min(last, end), copy.copy(segment)
                    if first < begin:
                        last = min(last, begin)
        return last, None

    def _intact(self, segment: Segment) -> list[Range]:
        """Which records can be read from a segment, as far as is known."""
        return gaps((segment.first, segment.last), self._damaged.get(segment.first, ()))

    def _still_damaged(self, segment: Segment) -> list[Range]:
        """What was damaged of a segment and is not in order again: somebody may have put back what it was."""
        damaged = ((first, min(last, segment.last)) for first, last in self._damaged.get(segment.first, ()))
        return [(first, last) for first, last in damaged if first < last and not segment.is_intact(first, last)]

    def _found(self) -> list[Segment]:
        if not self._folder.is_dir():
            return []
        names = [path for path in self._folder.iterdir() if path.suffix in {".data", ".index"}]
        firsts = {int(path.stem) for path in names if path.stem.isdecimal()}
        return [Segment.found(self._folder, first, self._of) for first in sorted(firsts)]

    def _begin_segment(self) -> None:
        folder = self._folder
        while not folder.is_dir():
            self._unsynced.add(folder.parent)
            folder = folder.parent
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._unsynced.add(self._folder)
        self._segments.append(Segment(self._folder, self._length, self._of))

    def _new_segments_after(self, count: int) -> list[int]:
        """After how many of the next `count` records a segment is to begin; one that has begun stays in one piece."""
        is_full = count > 0 and self._segments[-1].size >= self._segment_bytes
        within = (begin - self._length for begin in self._begins)
        return sorted({each for each in within if 0 < each <= count} | ({1} if is_full else set()))

    def _extend(self, data: bytes, ends: Sequence[int], start: int) -> None:
        """Write to the last segment; `ends` count from `start` bytes before `data`."""
        segment = self._segments[-1]
        if self._files is None:
            self._files = self._open(segment)
        data_file, index_file = self._files
        entries = segment.add(data, ends, start)
        write_all(data_file, data)
        write_all(index_file, entries)
        self._length += len(ends)

    def _open(self, segment: Segment) -> tuple[int, int]:
        """Open a segment for appending; its files must still hold what was written to them."""
        with contextlib.ExitStack() as undo:
            files = []
            for path, size in ((segment.data, segment.size), (segment.index, segment.index_size)):
                # Without O_NONBLOCK a named pipe would hold the append until somebody reads.
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(path, flags, 0o600)
                undo.callback(os.close, descriptor)
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or found.st_size != size:
                    raise lost_records(path, segment.first, self._length)
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


@contextlib.contextmanager
def _explained(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"spool {folder}: {error.strerror or error}") from error


def _remove_folder(path: Path) -> None:
    """Delete a folder, or what else has its name, as far as that goes."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
