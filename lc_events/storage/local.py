from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import posixpath
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from lc_events.errors import StorageError
from lc_events.faults import reach
from lc_events.storage.port import FileStat, Storage, WrittenFile

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

__all__ = ["LocalStorage"]

CHUNK_BYTES = 1 << 20
PART_SUFFIX = ".lc-part"

_CODES = {
    errno.ENOENT: "missing",
    errno.ENOTDIR: "missing",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EISDIR: "not_a_file",
    errno.ENAMETOOLONG: "not_a_file",
    errno.ELOOP: "not_a_file",
}


class LocalStorage(Storage):
    """Files below `root`, which is LC_ROOT: the URL `/data/x` is the file `root/data/x`.

    Written files are `NAME.lc-part` with a leading dot until they are whole; a leftover of a killed process goes away
    with the next write of that name. Modes follow the umask, so that a worker of another user can read.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links that may change
        self._serial = itertools.count(1)
        self._parts: set[str] = set()
        self._lock = threading.Lock()

    def path(self, url: str) -> Path:
        """Path of a URL; raises `StorageError` with code `outside` if it climbs above the root."""
        if "\0" in url:
            raise StorageError(f"{url!r}: a path with a null character", code="outside")
        depth = 0
        for part in url.split("/"):
            depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
            if depth < 0:
                raise StorageError(f"{url}: leads out of {self._root}", code="outside")
        return self._root / posixpath.normpath("/" + url.lstrip("/")).lstrip("/")

    def write(self, url: str, chunks: Iterable[bytes], *, within: str | None = None) -> WrittenFile:
        """See `Storage.write`."""
        path = self.path(url)
        if within is not None:
            self._require_within(path.parent, url, within)
        self._make_folder(path.parent)
        with _explained(f"cannot write {path}"):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            part = self._begin_part(path)
        size = 0
        digest = hashlib.sha256()
        try:
            with _explained(f"cannot write {path}"):
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            reach("file-begun")
            with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor, made with the umask's mode
                for chunk in chunks:
                    with _explained(f"cannot write {path}"):
                        _write_all(file.fileno(), chunk)
                    digest.update(chunk)
                    size += len(chunk)
                with _explained(f"cannot write {path}"):
                    os.fsync(file.fileno())
            reach("file-written")
            with _explained(f"cannot write {path}"):
                part.replace(path)
                reach("file-renamed")
                sync_folder(path.parent)
            reach("folder-synced")
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        finally:
            with self._lock:
                self._parts.discard(part.name)
        return WrittenFile(url, size, digest.hexdigest())

    def copy(
        self, source_url: str, target_url: str, *, below: tuple[str, ...], within: str | None = None
    ) -> WrittenFile:
        """See `Storage.copy`."""
        source = self.path(source_url)
        with self._opened_below(source_url, below) as descriptor:
            return self.write(target_url, _chunks(descriptor, source, 0, None), within=within)

    def make_folder(self, url: str) -> None:
        """See `Storage.make_folder`."""
        self._make_folder(self.path(url))

    def stat(self, url: str) -> FileStat:
        """See `Storage.stat`."""
        path = self.path(url)
        with _explained(f"cannot look at {path}"):
            found = path.stat()
            _require_file(found.st_mode)
        return FileStat(found.st_size)

    def read(
        self, url: str, *, offset: int = 0, length: int | None = None, below: tuple[str, ...] | None = None
    ) -> Iterator[bytes]:
        """See `Storage.read`."""
        path = self.path(url)
        with _opened(path) if below is None else self._opened_below(url, below) as descriptor:
            yield from _chunks(descriptor, path, offset, length)

    def _require_within(self, folder: Path, url: str, within: str) -> None:
        """A link below a job's folder, which its workers may make, must not lead our writing elsewhere."""
        real, allowed = Path(os.path.realpath(folder)), Path(os.path.realpath(self.path(within)))
        if real != allowed and allowed not in real.parents:
            raise StorageError(f"{url}: a link leads out of {within}", code="outside")

    @contextlib.contextmanager
    def _opened_below(self, url: str, below: tuple[str, ...]) -> Generator[int]:
        path = self.path(url)
        folders = {Path(os.path.realpath(self.path(folder))) for folder in below}
        outside = StorageError(f"{url}: does not lie below {' or '.join(below)}, links followed", code="outside")
        real = Path(os.path.realpath(path))
        if folders.isdisjoint(real.parents):
            raise outside
        with _opened(path) as descriptor:
            # A link may have been moved since: what was opened must be what lies below the folder.
            with _explained(f"cannot read {path}"):
                real = Path(os.path.realpath(path))
                same = os.path.samestat(real.stat(follow_symlinks=False), os.fstat(descriptor))
            if not same or folders.isdisjoint(real.parents):
                raise outside
            yield descriptor

    def _begin_part(self, path: Path) -> Path:
        """Unused temporary name beside `path`; those that no write of ours holds are leftovers and go."""
        prefix = f".{path.name}."
        with self._lock:
            for name in os.listdir(path.parent):  # noqa: PTH208 - names, not paths
                if name.startswith(prefix) and name.endswith(PART_SUFFIX) and name not in self._parts:
                    middle = name[len(prefix) : -len(PART_SUFFIX)]
                    if middle.replace("-", "").isdigit():
                        (path.parent / name).unlink(missing_ok=True)
            part = path.parent / f"{prefix}{os.getpid()}-{next(self._serial)}{PART_SUFFIX}"
            self._parts.add(part.name)
        return part

    def _make_folder(self, folder: Path) -> None:
        with _explained(f"cannot make folder {folder}"):
            missing = []
            at = folder
            while not at.is_dir():
                if at.exists() and not at.is_dir():  # another thread may just have made it
                    raise NotADirectoryError(errno.EEXIST, f"{at} is not a folder")
                missing.append(at)
                at = at.parent
            for new in reversed(missing):
                new.mkdir(exist_ok=True)
                sync_folder(new.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut; raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn the system's refusal into a `StorageError` that says what was tried and why it failed."""
    try:
        yield
    except OSError as error:
        code = _CODES.get(error.errno or 0)
        raise StorageError(f"{what}: {error.strerror or error}", code=code, missing=code == "missing") from error


@contextlib.contextmanager
def _opened(path: Path) -> Generator[int]:
    with _explained(f"cannot read {path}"):
        # Without O_NONBLOCK a named pipe would hold the caller until somebody writes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with _explained(f"cannot read {path}"):
            _require_file(os.fstat(descriptor).st_mode)
        yield descriptor
    finally:
        os.close(descriptor)


def _require_file(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EISDIR, "is not a regular file")


def _chunks(descriptor: int, path: Path, offset: int, length: int | None) -> Iterator[bytes]:
    end = None if length is None else offset + length
    while end is None or offset < end:
        with _explained(f"cannot read {path}"):
            chunk = os.pread(descriptor, CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - offset), offset)
        if not chunk:
            return
        offset += len(chunk)
        yield chunk


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
