"""Files below the node's root."""

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
from lc_events.files import open_to_read, sync_folder, write_all
from lc_events.storage.places import Places, opened_path, real_path
from lc_events.storage.port import FileStat, Storage, WrittenFile

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator

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
    Folders named as `below` or `within` are remembered, links followed, from their first use or from `remember`.
    What lies in one of `closed` is neither read below nor written within one.
    """

    def __init__(self, root: Path, *, closed: Collection[Path] = ()) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links that may change
        self._places = Places(closed)
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

    def remember(self, url: str) -> None:
        """From now on the folder is what is there now; `StorageError` `conflict` if it opens what is closed."""
        self._places.remember(self.path(url))

    def real_place(self, url: str) -> Path:
        """The folder as it is remembered, links followed; raises `StorageError`."""
        return self._places.real(self.path(url))

    def write(self, url: str, chunks: Iterable[bytes], *, within: str | None = None) -> WrittenFile:
        """See `Storage.write`."""
        path = self.path(url)
        self._make_folder(path.parent, url, within)
        with _opened_folder(path.parent) as folder:
            if within is not None:
                with _explained(f"cannot write {path}"):
                    real = opened_path(folder, path.parent)
                self._require_within(real / path.name, url, within)
            size, digest = self._write_in(folder, path, chunks)
        return WrittenFile(url, size, digest)

    def _write_in(self, folder: int, path: Path, chunks: Iterable[bytes]) -> tuple[int, str]:
        """Size and SHA-256; by the folder's descriptor, for its path may lead elsewhere by now."""
        with _explained(f"cannot write {path}"):
            if _is_folder(path.name, folder):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            part = self._begin_part(path.name, folder)
        size = 0
        digest = hashlib.sha256()
        try:
            with _explained(f"cannot write {path}"):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(part, flags, 0o666, dir_fd=folder)
            reach("file-begun")
            with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor, made with the umask's mode
                for chunk in chunks:
                    with _explained(f"cannot write {path}"):
                        write_all(file.fileno(), chunk)
                    digest.update(chunk)
                    size += len(chunk)
                with _explained(f"cannot write {path}"):
                    os.fsync(file.fileno())
            reach("file-written")
            with _explained(f"cannot write {path}"):
                os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                reach("file-renamed")
                os.fsync(folder)
            reach("folder-synced")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise
        finally:
            with self._lock:
                self._parts.discard(part)
        return size, digest.hexdigest()

    def copy(
        self, source_url: str, target_url: str, *, below: tuple[str, ...], within: str | None = None
    ) -> WrittenFile:
        """See `Storage.copy`."""
        source = self.path(source_url)
        with self._opened_below(source_url, below) as descriptor:
            return self.write(target_url, _chunks(descriptor, source, 0, None), within=within)

    def make_folder(self, url: str, *, within: str | None = None) -> None:
        """See `Storage.make_folder`."""
        self._make_folder(self.path(url), url, within)

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

    def _require_within(self, real: Path, url: str, within: str) -> None:
        """A link below a job's folder, which its workers may make, must not lead our writing elsewhere."""
        self._places.require(real, [self.path(within)], f"{url}: a link leads out of {within}")

    @contextlib.contextmanager
    def _opened_below(self, url: str, below: tuple[str, ...]) -> Generator[int]:
        path = self.path(url)
        folders = [self.path(folder) for folder in below]
        outside = f"{url}: does not lie below {' or '.join(below)}, links followed"
        self._places.require(real_path(path), folders, outside)
        with _opened(path) as descriptor:
            # A link may have been moved since: what was opened must be what lies below the folder.
            with _explained(f"cannot read {path}"):
                real = opened_path(descriptor, path)
            self._places.require(real, folders, outside)
            yield descriptor

    def _begin_part(self, name: str, folder: int) -> str:
        """Unused temporary name beside `name`; those that no write of ours holds are leftovers and go."""
        prefix = f".{name}."
        with self._lock:
            for other in os.listdir(folder):
                if other.startswith(prefix) and other.endswith(PART_SUFFIX) and other not in self._parts:
                    middle = other[len(prefix) : -len(PART_SUFFIX)]
                    if middle.replace("-", "").isdigit():
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(other, dir_fd=folder)
            part = f"{prefix}{os.getpid()}-{next(self._serial)}{PART_SUFFIX}"
            self._parts.add(part)
        return part

    def _make_folder(self, folder: Path, url: str, within: str | None) -> None:
        if within is not None:
            self._require_within(real_path(folder) / "new", url, within)
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


@contextlib.contextmanager
def _opened_folder(folder: Path) -> Generator[int]:
    with _explained(f"cannot open folder {folder}"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    except OSError:
        return False


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
        descriptor = open_to_read(path)
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
