"""Following growing files record by record, and keeping the records until no job needs them."""

from __future__ import annotations

from lc_events.datasets.follower import Follower
from lc_events.datasets.header import header_bytes, header_text
from lc_events.datasets.mark import Batch, Grew, Look, Mark, Reset, Unchanged, Unreadable
from lc_events.datasets.object_source import ObjectSource, PinnedObject
from lc_events.datasets.source import LocalSource, ReplacedError, Source, SourceStat, UnreadableError
from lc_events.datasets.spool import Spool
from lc_events.datasets.watch import FolderWatcher

__all__ = [
    "Batch",
    "FolderWatcher",
    "Follower",
    "Grew",
    "LocalSource",
    "Look",
    "Mark",
    "ObjectSource",
    "PinnedObject",
    "ReplacedError",
    "Reset",
    "Source",
    "SourceStat",
    "Spool",
    "Unchanged",
    "Unreadable",
    "UnreadableError",
    "header_bytes",
    "header_text",
]
