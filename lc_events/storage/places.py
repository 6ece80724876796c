"""Where the folders of jobs and models really lie, links followed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Places", "opened_path", "real_path"]

_OPEN_FILES = Path("/proc/self/fd")
_DELETED = " (deleted)"
"""What Linux puts behind the name of an open file that is gone, or replaced (proc_pid_fd(5))."""


class Places:
    """Where the folders of jobs and models really lie, as they were when they were first met.

    Who may write the folder above one could else exchange it for a link to any other. What lies in one of `closed`,
    the program's own files and folders, lies nowhere.
    """

    def __init__(self, closed: Collection[Path]) -> None:
        self._closed = tuple(real_path(path) for path in closed)
        self._real: dict[Path, Path] = {}

    def remember(self, folder: Path) -> None:
        """From now on the folder is the one that is there now; `StorageError` `conflict` if it opens what is closed."""
        real = real_path(folder)
        for closed in self._closed:
            if closed.is_relative_to(real) or real.is_relative_to(closed):
                where = "is" if closed == real else "holds" if closed.is_relative_to(real) else "lies in"
                raise StorageError(f"{folder} {where} {closed}, which is the controller's own", code="conflict")
        self._real[folder] = real

    def real(self, folder: Path) -> Path:
        """The folder as it is remembered, from now on if it was not; `StorageError` as `real_path`."""
        if (known := self._real.get(folder)) is not None:
            return known
        return self._real.setdefault(folder, real_path(folder))

    def require(self, real: Path, folders: Collection[Path], otherwise: str) -> None:
        """`StorageError` with code `outside` if a file, by its real path, does not lie below one of the folders."""
        for closed in self._closed:
            if real.is_relative_to(closed):
                raise StorageError(f"{closed} is the controller's own, and no job's", code="outside")
        if any(real.parent.is_relative_to(self.real(folder)) for folder in folders):
            return
        for folder in folders:
            if self.real(folder) != real_path(folder):
                since = "when the job was inserted or this program started"
                raise StorageError(f"{folder} is another folder than {since}", code="outside")
        raise StorageError(otherwise, code="outside")


def real_path(path: Path) -> Path:
    """The path without links; `StorageError` if it cannot be told, code `outside` if a link changes meanwhile."""
    try:
        return Path(os.path.realpath(path))
    except OSError as error:
        code = "outside" if error.errno in (errno.EINVAL, errno.ENOENT) else None
        raise StorageError(f"cannot follow the links of {path}: {error.strerror or error}", code=code) from error


def opened_path(descriptor: int, path: Path) -> Path:
    """The real path of what was opened as `path`, whatever that leads to by now; raises `OSError` and `StorageError`.

    Without /proc the path is followed again, and a link that is exchanged twice meanwhile may deceive us.
    """
    found = os.fstat(descriptor)
    with contextlib.suppress(FileNotFoundError):
        name = str((_OPEN_FILES / str(descriptor)).readlink())
        return Path(name.removesuffix(_DELETED) if stat.S_ISREG(found.st_mode) else name)
    real = real_path(path)
    if not os.path.samestat(real.stat(follow_symlinks=False), found):
        raise StorageError(f"{path}: a link changes while it is read", code="outside")
    return real
