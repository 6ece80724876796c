"""Where files of resources live: datasets, sample files, models; local or in S3, behind one interface."""

from __future__ import annotations

from lc_events.storage.credential import Credential
from lc_events.storage.local import LocalStorage
from lc_events.storage.port import FileStat, Storage, WrittenFile
from lc_events.storage.s3_clients import S3Clients
from lc_events.storage.select import Storages

__all__ = ["Credential", "FileStat", "LocalStorage", "S3Clients", "Storage", "Storages", "WrittenFile"]
