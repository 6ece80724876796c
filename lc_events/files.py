"""What `pathlib` does not offer of files, and several rooms need. Raises `OSError`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["open_to_read", "sync_folder", "write_all"]


def open_to_read(path: Path) -> int:
    """A descriptor, at once: a named pipe would else hold the caller until somebody writes into it."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however little the system takes at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
