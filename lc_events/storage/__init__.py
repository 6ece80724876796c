"""Where files of resources live: datasets, sample files, models; local now, objects later, behind one interface."""

from __future__ import annotations

from lc_events.storage.local import LocalStorage
from lc_events.storage.port import FileStat, Storage, WrittenFile
from lc_events.storage.select import storage_for

__all__ = ["FileStat", "LocalStorage", "Storage", "WrittenFile", "storage_for"]
