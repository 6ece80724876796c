"""What a dataset's bytes come from: a local file, or an object."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from lc_events.errors import StorageError
from lc_events.files import open_to_read

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["LocalSource", "OpenSource", "ReplacedError", "Source", "SourceStat", "UnreadableError"]


class UnreadableError(StorageError):
    """The dataset itself cannot be read or split into records; our own spool never raises this."""

    default_code = "io"


class ReplacedError(UnreadableError):
    """What was opened is gone, another one has its name: what was read of it so far is of no use; look again."""

    default_code = "changed"


@dataclass(frozen=True, slots=True)
class SourceStat:
    """What a source tells without being read; two equal ones mean equal bytes, save within one grain of the clock.

    `identity` is another one when the name leads to another file (inode; empty for an object), `stamp` changes with
    every write (mtime and ctime, or the ETag), `changed_ns` is the wall clock of the last write, None where a write
    is never seen half done.
    """

    size: int
    identity: str
    stamp: str
    changed_ns: int | None


class OpenSource(Protocol):
    """One file or object as it was opened: a name that moves to another file does not move this."""

    def stat(self) -> SourceStat:
        """Present state of what was opened; raises `UnreadableError`."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`, fewer only where the source ends; raises `UnreadableError`."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Source(Protocol):
    """Where a dataset's bytes come from: a local file, or an object (`ObjectSource`)."""

    def stat(self) -> SourceStat:
        """Present state of what the name leads to; raises `UnreadableError`."""
        ...

    def open(self) -> OpenSource:
        """Open what the name leads to now; raises `UnreadableError`."""
        ...


class LocalSource:
    """A file of this machine; links are followed at each opening."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def stat(self) -> SourceStat:
        """See `Source.stat`."""
        try:
            return _local_stat(self._path.stat())
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def open(self) -> OpenLocalSource:
        """See `Source.open`."""
        try:
            descriptor = open_to_read(self._path)
            try:
                _local_stat(os.fstat(descriptor))
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise _unreadable(self._path, error) from error
        return OpenLocalSource(self._path, descriptor)


class OpenLocalSource:
    """See `OpenSource`; closed at the end of the `with`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def stat(self) -> SourceStat:
        """See `OpenSource.stat`."""
        try:
            return _local_stat(os.fstat(self._descriptor))
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def read(self, offset: int, length: int) -> bytes:
        """See `OpenSource.read`."""
        pieces = []
        try:
            while length > 0 and (piece := os.pread(self._descriptor, length, offset)):
                pieces.append(piece)
                offset += len(piece)
                length -= len(piece)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def _local_stat(found: os.stat_result) -> SourceStat:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EISDIR, "is not a regular file")
    # A program that sets the mtime back (cp -p, rsync) cannot set the ctime.
    times = {found.st_mtime_ns, found.st_ctime_ns}
    return SourceStat(
        size=found.st_size,
        identity=str(found.st_ino),
        stamp=".".join(str(time) for time in sorted(times)),
        changed_ns=max(times),
    )


def _unreadable(path: Path, error: OSError) -> UnreadableError:
    missing = error.errno in {errno.ENOENT, errno.ENOTDIR}
    code = {errno.EACCES: "denied", errno.EPERM: "denied", errno.EISDIR: "not_a_file"}.get(error.errno or 0)
    return UnreadableError(
        f"cannot read {path}: {error.strerror or error}", code="missing" if missing else code, missing=missing
    )
