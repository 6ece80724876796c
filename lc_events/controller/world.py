"""All jobs and datasets as they were last committed, and who belongs to whom. Values: any thread may read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from lc_events.application.journal import Journal
from lc_events.application.links import linked
from lc_events.application.recorder import StoredRow
from lc_events.domain.dataset import DatasetState, fold_dataset
from lc_events.domain.events import Event
from lc_events.domain.job import JobState, output_place
from lc_events.domain.job_fold import fold
from lc_events.errors import IntegrityError
from lc_events.messages.names import DATASET_KIND, JOB_KIND, kind_of, stream_id

__all__ = ["State", "World", "dataset_stream", "fresh"]

State = JobState | DatasetState


def fresh(stream: str) -> State:
    """The state of a stream that has no event yet."""
    return JobState(stream) if kind_of(stream) == JOB_KIND else DatasetState(stream)


def dataset_stream(job: JobState) -> str | None:
    """The stream of the dataset that a job learns from."""
    name = job.dataset_name
    return None if name is None else stream_id(job.namespace, DATASET_KIND, name)


def _folded(stream: str, events: Iterable[Event]) -> State:
    try:
        return fold(stream, events) if kind_of(stream) == JOB_KIND else fold_dataset(stream, events)
    except IntegrityError:
        raise
    except Exception as error:
        raise IntegrityError(f"{stream}: its events cannot be replayed: {error!r}") from error


class World:
    """Committed states; only the committer changes them, by putting new values in place of old ones.

    `broken` are the streams whose history cannot be read; they are left as they are.
    """

    def __init__(self) -> None:
        self.broken: dict[str, IntegrityError] = {}
        self._states: dict[str, State] = {}
        self._jobs_of: dict[str, frozenset[str]] = {}
        self._owners: dict[str, str] = {}

    @classmethod
    def load(cls, journal: Journal) -> World:
        """Fold the whole store in one ordered scan, checking every link; a stream that fails is left out and named."""
        world = cls()
        for stream, rows in groupby(journal.rows.scan(), key=lambda row: row.stream):
            world._take(stream, rows, journal)
        return world

    def rebuild(self, journal: Journal, streams: Iterable[str]) -> None:
        """Fold some streams anew from what is on disk: what was remembered of them does not fit it."""
        for stream in streams:
            if rows := journal.rows.rows(stream=stream):
                self._take(stream, rows, journal)

    def _take(self, stream: str, rows: Iterable[StoredRow], journal: Journal) -> None:
        try:
            state = _folded(stream, map(journal.decode, linked(stream, rows)))
        except IntegrityError as error:
            self.broken[stream] = error
        else:
            self.replace({stream: state})

    def get(self, stream: str) -> State | None:
        """The committed state of a stream, if it has one."""
        return self._states.get(stream)

    def streams(self) -> list[str]:
        """All streams; a copy, so that the committer may go on meanwhile."""
        return list(self._states)

    def jobs(self) -> Iterator[JobState]:
        """All jobs, deleted ones too."""
        return (state for state in list(self._states.values()) if isinstance(state, JobState))

    def datasets(self) -> Iterator[DatasetState]:
        """All datasets, deleted ones too."""
        return (state for state in list(self._states.values()) if isinstance(state, DatasetState))

    def dataset(self, stream: str | None) -> DatasetState | None:
        """A dataset's committed state."""
        state = None if stream is None else self._states.get(stream)
        return state if isinstance(state, DatasetState) else None

    def jobs_of(self, dataset: str) -> frozenset[str]:
        """Streams of the live jobs that learn from a dataset."""
        return self._jobs_of.get(dataset, frozenset())

    def has_broken_job(self, namespace: str) -> bool:
        """Whether there is a job whose needs we do not know."""
        return any(stream.startswith(f"{namespace}/{JOB_KIND}/") for stream in self.broken)

    def owner_of(self, output_dir: str) -> str | None:
        """The live job that writes to an output URL's folder."""
        return self._owners.get(output_place(output_dir))

    def replace(self, states: Mapping[str, State]) -> None:
        """Put committed states in place; the indices follow."""
        for stream, state in states.items():
            before = self._states.get(stream)
            self._states[stream] = state
            if isinstance(state, JobState):
                self._index(stream, before if isinstance(before, JobState) else None, state)

    def _index(self, stream: str, before: JobState | None, after: JobState) -> None:
        old = dataset_stream(before) if before is not None and before.is_live else None
        new = dataset_stream(after) if after.is_live else None
        if old != new:
            if old is not None:
                self._jobs_of[old] = self.jobs_of(old) - {stream}
            if new is not None:
                self._jobs_of[new] = self.jobs_of(new) | {stream}
        if before is not None and before.is_live and self.owner_of(before.output_dir) == stream:
            del self._owners[output_place(before.output_dir)]
        if after.is_live:
            self._owners[output_place(after.output_dir)] = stream
