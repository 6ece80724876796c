"""One local controller per state folder: an exclusive lock, held as long as the process lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from lc_events.errors import ConflictError

__all__ = ["FolderLock"]


class FolderLock:
    """An advisory lock on `FOLDER/lock`; the kernel frees it at a `kill -9` too."""

    def __init__(self, folder: Path) -> None:
        """ConflictError, naming the holder's process id, if another process has it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise ConflictError(f"{folder} is in use by process {holder}; one program to a state folder") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def __enter__(self) -> Self:
        """Hold it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the folder free."""
        self.release()

    def release(self) -> None:
        """Give the folder free."""
        os.close(self._descriptor)
