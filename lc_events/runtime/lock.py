"""One program to a folder: an exclusive lock, held as long as the process lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from lc_events.errors import ConflictError, StoreError

__all__ = ["FolderLock"]


class FolderLock:
    """An advisory lock on `FOLDER/lock`, a state folder or that of a store; the kernel frees it at a `kill -9` too."""

    def __init__(self, folder: Path, setting: str) -> None:
        """Take it, and create the folder where needed; `setting` is the one that names the folder.

        ConflictError with the holder's process id if another process has it, StoreError if nothing can be locked there.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            who = f"process {holder}" if holder else "another process"
            raise ConflictError(
                f"{folder} is in use by {who}: end it; for other nodes, give this program another {setting}"
            ) from None
        except OSError as error:
            os.close(self._descriptor)
            raise StoreError(
                f"{folder / 'lock'} cannot be locked: {error.strerror}; "
                f"let {setting} name a folder on a disk of this machine"
            ) from error
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
