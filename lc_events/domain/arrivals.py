"""Where a job's samples came from: the batches in its history, and which records of which file each of them was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lc_events.domain.events import Event, GlobalManagerMessageReceived, SamplesArrived

__all__ = ["ARRIVING", "Arrival", "Records", "arrivals"]

ARRIVING = (GlobalManagerMessageReceived.__name__, SamplesArrived.__name__)
"""Names of the events that say it; `arrivals` needs no others."""


class Records(NamedTuple):
    """Records `[first, last)` of a dataset's file number `epoch`; `bytes` is where the batch with them stood."""

    dataset: str
    url: str
    epoch: int
    rows: tuple[int, int]
    bytes: tuple[int, int]
    version: int
    """The event by which they arrived."""


class Arrival(NamedTuple):
    """A batch, and where it lies in the dataset's spool."""

    spooled: tuple[int, int]
    records: Records


def arrivals(events: Iterable[Event]) -> list[Arrival]:
    """All batches of samples; a field that an event does not store is that of the batch before, in the same life."""
    found, dataset, url = [], "", ""
    for event in events:
        if isinstance(event, GlobalManagerMessageReceived) and event.generation is not None:
            dataset = url = ""
        elif isinstance(event, SamplesArrived):
            dataset = dataset if event.dataset is None else event.dataset
            url = url if event.url is None else event.url
            if event.spooled is not None:
                rows, span = (event.rows[0], event.rows[1]), (event.bytes[0], event.bytes[1])
                records = Records(dataset, url, event.epoch, rows, span, event.originator_version)
                found.append(Arrival((event.spooled[0], event.spooled[1]), records))
    return found
