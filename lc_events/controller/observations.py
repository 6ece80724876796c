"""What was seen of a dataset, as work for the committer: its event and its jobs' samples in one save."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from lc_events.controller.transaction import Transaction
from lc_events.controller.world import dataset_stream
from lc_events.datasets.follower import Follower
from lc_events.datasets.mark import Batch, Grew, Look, Mark, Reset, Unchanged, Unreadable
from lc_events.domain.dataset import DatasetState, observe_dataset, reset_dataset, unreadable_dataset
from lc_events.domain.decisions import Facts, Samples, add_samples
from lc_events.domain.job import JobState
from lc_events.messages.json import JsonObject
from lc_events.messages.names import parts_of

__all__ = ["Observed", "Reread", "Sighting", "place_of"]


@dataclass(frozen=True)
class Sighting:
    """Which dataset was looked at, by whom, and what to do when the look is settled."""

    stream: str
    url: str
    format: str
    follower: Follower
    facts: Callable[[], Facts]
    is_current: Callable[[], bool]
    finished: Callable[[float | None], None]
    """Called with the seconds until the next look is due without any notice, None for only then."""

    def is_of(self, dataset: DatasetState) -> bool:
        """Whether the dataset is still what was looked at: GM may have put another file in its place meanwhile."""
        mark = Mark() if dataset.mark is None else Mark.from_json(dataset.mark)
        is_same = (dataset.url, dataset.format, mark) == (self.url, self.format, self.follower.mark)
        return is_same and dataset.is_live and self.is_current()

    def samples(self, epoch: int, batch: Batch) -> Samples:
        """A batch as the domain sees it."""
        _, _, name = parts_of(self.stream)
        return Samples(name, self.url, self.format, batch.header, epoch, batch.rows, batch.bytes, batch.spooled)


def place_of(job: JobState, dataset: DatasetState) -> tuple[int, int]:
    """Record and byte up to which a job has taken the present file of its dataset."""
    place = job.place
    if place is None or place.epoch != dataset.epoch:
        return 0, 0
    return place.rows, place.offset


class Observed:
    """A look, to be committed: the dataset's event and its jobs' samples in one save."""

    def __init__(self, sighting: Sighting, look: Look) -> None:
        self._sighting = sighting
        self._look = look

    def announced(self) -> Collection[tuple[str, str]]:
        """Nothing: the place in the file tells repeats."""
        return ()

    def carry_out(self, transaction: Transaction) -> None:
        """Record what the look found."""
        dataset = transaction.dataset(self._sighting.stream)
        if not self._sighting.is_of(dataset):
            transaction.then(lambda: self._sighting.finished(0.0))
            return
        look, facts = self._look, self._sighting.facts()
        again_in: float | None = None
        match look:
            case Unchanged(again_in):
                if dataset.problem is not None:
                    self._repaired(transaction, dataset, facts.now)
            case Grew(batch, mark, again_in):
                self._grew(transaction, dataset, batch, mark, facts)
            case Reset(reason, mark):
                transaction.keep(reset_dataset(dataset, cause=reason, mark=_json(mark), now=facts.now))
                transaction.then(lambda: self._sighting.follower.committed(mark))
                again_in = 0.0
            case Unreadable(code, error):
                transaction.keep(unreadable_dataset(dataset, code=code, error=error, now=facts.now))
        if isinstance(look, (Unchanged, Grew)) and again_in != 0:
            self._place_adopted(transaction, facts)
        transaction.then(lambda: self._sighting.finished(again_in))

    def failed(self, _error: Exception) -> None:
        """Look again after a while."""
        self._sighting.finished(1.0)

    def _place_adopted(self, transaction: Transaction, facts: Facts) -> None:
        """The file's end is reached: a job that another controller began counts from here on."""
        dataset = transaction.dataset(self._sighting.stream)
        batch = Batch((0, dataset.records), (0, dataset.offset), None, None)
        for job in transaction.jobs_of(self._sighting.stream):
            if job.starts_at_end:
                transaction.keep(add_samples(job, self._sighting.samples(dataset.epoch, batch), facts))

    def _repaired(self, transaction: Transaction, dataset: DatasetState, now: str) -> None:
        here, mark = (dataset.records, dataset.records), dataset.mark or {}
        span = (dataset.offset, dataset.offset)
        transaction.keep(observe_dataset(dataset, rows=here, span=span, mark=mark, now=now, spooled=None))

    def _grew(self, transaction: Transaction, dataset: DatasetState, batch: Batch, mark: Mark, facts: Facts) -> None:
        transaction.keep(
            observe_dataset(
                dataset, rows=batch.rows, span=batch.bytes, mark=_json(mark), now=facts.now, spooled=batch.spooled
            )
        )
        samples = self._sighting.samples(dataset.epoch, batch)
        for job in transaction.jobs_of(self._sighting.stream):
            is_next = not job.starts_at_end and place_of(job, dataset)[0] == batch.rows[0]
            if is_next and batch.spooled is not None:
                transaction.keep(add_samples(job, samples, facts))
        transaction.then(lambda: self._sighting.follower.committed(mark))


class Reread:
    """What a job that lagged gets, to be committed."""

    def __init__(self, sighting: Sighting, job: JobState, epoch: int, batch: Batch, mark: Mark) -> None:
        self._sighting = sighting
        self._job = job
        self._epoch = epoch
        self._batch = batch
        self._mark = mark

    def announced(self) -> Collection[tuple[str, str]]:
        """Nothing: the place in the file tells repeats."""
        return ()

    def carry_out(self, transaction: Transaction) -> None:
        """Give the job its samples, unless it moved meanwhile."""
        job = transaction.job(self._job.stream)
        dataset = transaction.dataset(self._sighting.stream)
        fits = (
            job.is_live
            and self._sighting.is_of(dataset)
            and job.generation == self._job.generation
            and dataset.epoch == self._epoch
            and dataset_stream(job) == self._sighting.stream
            and place_of(job, dataset)[0] == self._batch.rows[0]
        )
        if fits:
            samples = self._sighting.samples(self._epoch, self._batch)
            transaction.keep(add_samples(job, samples, self._sighting.facts()))
            transaction.then(lambda: self._sighting.follower.committed(self._mark))
        transaction.then(lambda: self._sighting.finished(0.0))

    def failed(self, _error: Exception) -> None:
        """Look again after a while."""
        self._sighting.finished(1.0)


def _json(mark: Mark) -> JsonObject:
    return cast("JsonObject", mark.to_json())
