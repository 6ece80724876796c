"""Samples that a spool lost: read again from the dataset's file, as long as that holds what was counted of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lc_events.application.journal import Journal
from lc_events.controller.world import World
from lc_events.datasets.follower import Follower
from lc_events.datasets.mark import Batch, Mark
from lc_events.datasets.ranges import Range, merged
from lc_events.datasets.source import UnreadableError
from lc_events.datasets.spool import Spool
from lc_events.domain.arrivals import ARRIVING, arrivals
from lc_events.domain.dataset import DatasetState
from lc_events.domain.pauses import pause_after
from lc_events.domain.views import show_samples
from lc_events.errors import StorageError
from lc_events.runtime.clock import Clock

__all__ = ["WHAT_TO_DO", "LostSamples"]

_log = logging.getLogger("lc_events.datasets")

WHAT_TO_DO = (
    "put the files back from a copy, or delete the job and insert it again, to begin anew with what the dataset holds"
)


class _Loss(NamedTuple):
    """Why samples cannot be had again, how often that was tried, and when it is to be tried next."""

    why: str
    attempts: int
    again_at: float


class _Sought(NamedTuple):
    """Where lost samples stood in file number `epoch` of a dataset."""

    epoch: int
    lost: Sequence[Range]
    batches: Sequence[Batch]


class LostSamples:
    """What the spools of datasets lack of the samples that jobs need; tried again after 1 s, 2 s … 60 s.

    Where a sample stood in the file is what the events say with which jobs took it: that never changes, so histories
    are read once for the same lost samples, however often they are tried. One call for a dataset at a time.
    """

    def __init__(self, journal: Journal, world: World, clock: Clock) -> None:
        self._journal = journal
        self._world = world
        self._clock = clock
        self._losses: dict[str, _Loss] = {}
        self._sought: dict[str, _Sought] = {}

    def restore(self, stream: str, spool: Spool, follower: Follower, needed: Sequence[Range]) -> float | None:
        """Restore what is lost of the samples `needed`; the seconds after which to call again, None for nothing to do.

        Raises `StorageError` of the spool.
        """
        if not spool.is_whole():
            follower.settle()
        loss = self._losses.get(stream)
        if not _lost(spool, needed):
            self._ended(stream)
        elif loss is None or self._clock.monotonic() >= loss.again_at:
            return self._attempt(stream, spool, follower, needed)
        return None

    def words(self, stream: str) -> str:
        """What is known of lost samples of a dataset, and what to do."""
        dataset, loss = self._world.dataset(stream), self._losses.get(stream)
        if dataset is None or not dataset.is_live:
            return f"the dataset, whose file may hold them, is not here: {WHAT_TO_DO}"
        return "they are looked for in the dataset's file" if loss is None else f"{loss.why}: {WHAT_TO_DO}"

    def _attempt(self, stream: str, spool: Spool, follower: Follower, needed: Sequence[Range]) -> float | None:
        follower.settle()  # somebody may have put the files back
        if stream not in self._losses and _lost(spool, needed):
            for first, last in set(needed):  # where there is some damage there is more
                spool.find_damage(first, min(last, spool.committed))
        if not (lost := _lost(spool, needed)):
            self._ended(stream)
            return None
        why = self._read_again(stream, follower, lost)
        if not (still := _lost(spool, needed)):
            self._ended(stream, read_again=_count(lost))
            return None
        before = self._losses.get(stream)
        attempts = 1 if before is None else before.attempts + 1
        pause = pause_after(attempts)
        self._losses[stream] = _Loss(why, attempts, self._clock.monotonic() + pause)
        if before is None or before.why != why:
            lack = f"{show_samples(_count(still))} that jobs need {'is' if _count(still) == 1 else 'are'} lost"
            _log.warning("%s: %s from the spool %s, and %s: %s", stream, lack, spool.folder, why, WHAT_TO_DO)
        return pause

    def _read_again(self, stream: str, follower: Follower, lost: Sequence[Range]) -> str:
        """Put back what the file gives; why it may not have given all."""
        replaced = "the dataset's file no longer holds them"
        dataset = self._world.dataset(stream)
        if dataset is None or dataset.mark is None or Mark.from_json(dataset.mark) != follower.mark:
            return replaced
        try:
            if batches := self._batches(dataset, lost):
                follower.restore(batches)
        except UnreadableError as error:
            return str(error)
        except StorageError as error:
            if error.code != "changed":
                raise
        return replaced

    def _batches(self, dataset: DatasetState, lost: Sequence[Range]) -> Sequence[Batch]:
        """What live jobs took of the dataset's present file with these samples, each batch once."""
        sought = self._sought.get(dataset.stream)
        if sought is None or (sought.epoch, sought.lost) != (dataset.epoch, lost):
            batches = [batch for batch in self._taken(dataset) if _overlaps(batch, lost)]
            sought = self._sought[dataset.stream] = _Sought(dataset.epoch, lost, batches)
        return sought.batches

    def _taken(self, dataset: DatasetState) -> Iterable[Batch]:
        found: dict[Range, Batch] = {}
        for job in self._world.jobs():
            if not job.is_live or job.namespace != dataset.namespace:
                continue
            pages = self._journal.rows.pages(job.stream, names=ARRIVING)
            for spooled, records in arrivals(self._journal.decode(row) for page in pages for row in page):
                if (records.dataset, records.epoch) == (dataset.name, dataset.epoch):
                    found[spooled] = Batch(records.rows, records.bytes, spooled, None)
        return found.values()

    def _ended(self, stream: str, *, read_again: int = 0) -> None:
        if read_again:
            lost = show_samples(read_again)
            _log.warning("%s: %s that the spool had lost: read again from the dataset's file", stream, lost)
        elif stream in self._losses:
            _log.warning("%s: no sample that a job needs is known to be lost any more", stream)
        self._losses.pop(stream, None)
        self._sought.pop(stream, None)


def _lost(spool: Spool, needed: Sequence[Range]) -> list[Range]:
    """The parts of the needed ranges that the spool does not have, each sample once."""
    return [gap for first, last in merged(needed) for gap in spool.lost(first, min(last, spool.committed))]


def _overlaps(batch: Batch, ranges: Iterable[Range]) -> bool:
    begin, end = batch.spooled or (0, 0)
    return any(begin < last and first < end for first, last in ranges)


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first for first, last in ranges)
