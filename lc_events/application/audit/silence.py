"""Why a dataset gives no samples: it was deleted, or cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.travel import version_at
from lc_events.application.broken import BrokenError
from lc_events.application.cloud_events import time_of
from lc_events.domain import events as e
from lc_events.domain.dataset import DatasetState
from lc_events.errors import NotFoundError
from lc_events.messages.names import parts_of

__all__ = ["Silence", "dataset_at", "silence"]

_READ = [event.__name__ for event in (e.DatasetObserved, e.DatasetReset, e.DatasetDeleted)]
_UNREADABLE = [e.DatasetUnreadable.__name__]
_DELETED = [e.DatasetDeleted.__name__]


class Silence(NamedTuple):
    """A dataset, why it cannot be read (None: it was deleted), and since when, as events carry times."""

    dataset: str
    error: str | None
    since: str

    def words(self, show: Callable[[str], str]) -> str:
        """As a part of a sentence; `show` writes a time."""
        if self.error is None:
            return f"dataset {self.dataset} was deleted at {show(self.since)}"
        return f"dataset {self.dataset} cannot be read since {show(self.since)}: {self.error}"


def dataset_at(archive: Archive[Any], stream: str, time: str | None = None) -> DatasetState | None:
    """A dataset as it was at a time, or is now; None if there was none yet, or its history cannot be read."""
    if archive.journal.head(stream).version == 0:
        return None
    try:
        state = archive.state(stream)
        if time is not None and state.updated > time:
            state = archive.state(stream, version_at(archive, stream, time).version)
    except (BrokenError, NotFoundError):
        return None
    return state if isinstance(state, DatasetState) else None


def silence(archive: Archive[Any], dataset: DatasetState | None) -> Silence | None:
    """What keeps a dataset from giving samples, in the state that it has; None for one that can be read."""
    if dataset is None or (dataset.is_live and dataset.problem is None):
        return None
    rows, until = archive.journal.rows, dataset.version
    namespace, _, name = parts_of(dataset.stream)
    if dataset.problem is None:
        deleted = rows.newest(dataset.stream, _DELETED, lte=until)
        return None if deleted is None else Silence(f"{namespace}/{name}", None, time_of(deleted))
    # the newest DatasetUnreadable may be an hourly repeat, or say another error than the first
    read = rows.newest(dataset.stream, _READ, lte=until)
    after = 0 if read is None else read.version
    first = rows.rows(stream=dataset.stream, gt=after, lte=until, names=_UNREADABLE, limit=1)
    since = time_of(first[0]) if first else dataset.problem.time
    return Silence(f"{namespace}/{name}", dataset.problem.error, since)
