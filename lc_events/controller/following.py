"""Following datasets: who is looked at when, what a look becomes in one commit, and jobs that lag behind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lc_events.application.journal import Journal
from lc_events.controller.committer import Committer
from lc_events.controller.lanes import Lanes
from lc_events.controller.locations import Locations
from lc_events.controller.lost_samples import LostSamples
from lc_events.controller.observations import Observed, Reread, Sighting, place_of
from lc_events.controller.world import State, World, dataset_stream
from lc_events.datasets.follower import Follower
from lc_events.datasets.mark import Look, Mark, Unreadable
from lc_events.datasets.segment import GONE
from lc_events.datasets.source import UnreadableError
from lc_events.datasets.spool import Spool
from lc_events.domain.dataset import DatasetState, is_of_data
from lc_events.domain.decisions import Facts
from lc_events.domain.job import JobState
from lc_events.domain.pauses import pause_after
from lc_events.domain.stamp import stamp
from lc_events.errors import StorageError
from lc_events.faults import reach
from lc_events.messages.names import DATASET_KIND, parts_of, stream_id
from lc_events.runtime.clock import Clock

__all__ = ["Following"]

_log = logging.getLogger("lc_events.datasets")

_STOP_SECONDS = 8.0


@dataclass
class _Followed:
    """One dataset: its spool and follower, and whether somebody is at it."""

    stream: str
    spool: Spool
    follower: Follower
    url: str
    format: str
    path: Path | None
    """None for an object."""
    gm_messages: int
    trouble: str | None = None
    failures: int = 0
    pause: float = 0.0
    paused_until: float = 0.0
    is_busy: bool = False
    again: bool = False
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Following:
    """Looks at datasets when their file changed, and every `period` seconds; one look or reread of each at a time.

    A look's records are in the spool, synced, before the commit that holds `DatasetObserved` and the `SamplesArrived`
    of all its jobs; the next look waits for that commit. An S3 server or a spool in trouble is tried again after 1 s,
    2 s … 60 s, and at once when GM sends the dataset again, for it may bring a new credential.
    """

    def __init__(
        self,
        committer: Committer,
        world: World,
        clock: Clock,
        *,
        journal: Journal,
        folder: Path,
        locations: Locations,
        period: float,
        zone: str,
        watch: Callable[[Path], None],
        unwatch: Callable[[Path], None],
    ) -> None:
        self._committer = committer
        self._world = world
        self._clock = clock
        self._folder = folder
        self._locations = locations
        self._period = period
        self._zone = zone
        self._watch = watch
        self._unwatch = unwatch
        self._followed: dict[str, _Followed] = {}
        self._ending: dict[str, _Followed] = {}
        """Those that ended amid a look, which may still write into the spool: the next one waits for it."""
        self._lost = LostSamples(journal, world, clock)
        self._lanes = Lanes("datasets")

    def start(self) -> None:
        """Look at every dataset at once, then periodically."""
        self.consider(self._world.datasets())
        self._committer.later(self._period, self._look_at_all)

    def stop(self) -> None:
        """Let looks that have begun finish, if they do in a few seconds."""
        self._lanes.stop(_STOP_SECONDS)

    def spooled(self, dataset: str, first: int, last: int) -> Iterator[bytes]:
        """Records `[first, last)` of a dataset's spool; what is gone (StorageError `lost`, `damaged`) is looked for."""
        followed = self._followed.get(dataset)
        spool = followed.spool if followed is not None else Spool(self._spool_folder(dataset))
        try:
            yield from spool.read(first, last)
        except StorageError as error:
            if error.code not in GONE:
                raise
            if followed is not None:
                self._request(followed)
            raise StorageError(f"{error}; {self._lost.words(dataset)}", code=error.code) from error

    def noticed(self, path: Path) -> None:
        """A file changed; any thread."""
        for followed in list(self._followed.values()):
            if followed.path == path:
                self._request(followed)

    def consider(self, states: Iterable[State]) -> None:
        """Begin, change or end following; serve jobs that lag. On the committer's thread."""
        touched: set[str] = set()
        for state in states:
            if isinstance(state, DatasetState):
                self._follow(state)
                touched.add(state.stream)
            elif (stream := dataset_stream(state)) is not None:
                touched.add(stream)
                touched.update(stream_id(state.namespace, DATASET_KIND, each.dataset) for each in state.sources[:-1])
        for stream in touched:
            followed = self._followed.get(stream)
            if followed is None:
                continue
            if self._laggard(stream) is not None or self._is_awaited(stream):
                self._request(followed)

    def _spool_folder(self, stream: str) -> Path:
        namespace, _, name = parts_of(stream)
        return self._folder / namespace / name

    def _follow(self, state: DatasetState) -> None:
        followed = self._followed.get(state.stream)
        is_same = followed is not None and (followed.url, followed.format) == (state.url, state.format)
        if followed is not None and not (is_same and state.is_live):
            self._end(followed)
        if state.is_live and not (followed is not None and is_same):
            self._begin(state)
        elif state.is_live and followed is not None and followed.gm_messages != state.gm_messages:
            followed.gm_messages = state.gm_messages
            followed.paused_until = 0.0
            self._request(followed)

    def _begin(self, state: DatasetState, *, trouble: str | None = None, failures: int = 0) -> None:
        if state.stream in self._ending:
            return
        try:
            spool = self._opened_spool(state)
        except StorageError as error:
            if str(error) != trouble:
                _log.warning("%s: %s", state.stream, error)
            again = partial(self._begin_again, state, str(error), failures + 1)
            self._committer.later(pause_after(failures + 1), again)
            return
        path = self._locations.path(state.url)
        mark = None if state.mark is None else Mark.from_json(state.mark)
        source = self._locations.source(state.stream, state.url)
        follower = Follower(
            source, url=state.url, format=state.format, mark=mark, spool=spool, partial_seconds=self._period
        )
        followed = _Followed(state.stream, spool, follower, state.url, state.format, path, state.gm_messages)
        self._followed[state.stream] = followed
        if path is not None:
            self._watch(path)
        self._request(followed)

    def _begin_again(self, state: DatasetState, trouble: str, failures: int) -> None:
        """What changed meanwhile has begun anew by itself."""
        if self._world.dataset(state.stream) is state and state.stream not in self._followed:
            self._begin(state, trouble=trouble, failures=failures)

    def _opened_spool(self, state: DatasetState) -> Spool:
        spool = Spool(self._spool_folder(state.stream))
        length = self._committed_length(state)
        if self._world.has_broken_job(state.namespace):
            length = max(length, spool.length)  # what a history that cannot be read refers to stays
        spool.cut(length)
        return spool

    def _committed_length(self, state: DatasetState) -> int:
        ends = [state.spool_end]
        ends += [job.spool_ends.get(state.name, 0) for job in self._world.jobs() if job.namespace == state.namespace]
        return max(ends)

    def _end(self, followed: _Followed) -> None:
        with followed.lock:
            followed.ended = True
            if followed.is_busy:
                self._ending[followed.stream] = followed
            else:
                followed.spool.close()
        del self._followed[followed.stream]
        path = followed.path
        if path is not None and not any(other.path == path for other in self._followed.values()):
            self._unwatch(path)

    def _look_at_all(self) -> None:
        self._committer.later(self._period, self._look_at_all)
        for followed in list(self._followed.values()):
            self._request(followed)

    def _request(self, followed: _Followed) -> None:
        """Look now, or once more when the look that is under way was committed."""
        with followed.lock:
            followed.again = followed.is_busy
            if followed.is_busy or followed.ended or self._clock.monotonic() < followed.paused_until:
                return
            followed.is_busy = True
        lane = self._locations.lane_of_dataset(followed.stream, followed.url)
        self._lanes.submit(lane, partial(self._attend, followed))

    def _finished(self, followed: _Followed, again_in: float | None) -> None:
        with followed.lock:
            followed.is_busy = False
            again_in = followed.pause or (0.0 if followed.again else again_in)
            followed.paused_until = self._clock.monotonic() + followed.pause
            has_ended = followed.ended
        if has_ended:
            self._committer.later(0.0, lambda: self._ended(followed))
            followed.spool.close()
        elif again_in is not None:
            if again_in <= 0:
                self._request(followed)
            else:
                self._committer.later(again_in, lambda: self._request(followed))

    def _ended(self, followed: _Followed) -> None:
        """The last look of one that ended is settled; on the committer's thread."""
        if self._ending.get(followed.stream) is followed:
            del self._ending[followed.stream]
            dataset = self._world.dataset(followed.stream)
            if dataset is not None:
                self._follow(dataset)

    def _attend(self, followed: _Followed) -> None:
        """On a thread of its lane: restore what the spool lost, serve a job that lags, else look at the file."""
        try:
            self._tend(followed)
            job = self._laggard(followed.stream)
            work = None if job is None else self._reread(followed, job)
            if work is None:
                work = self._looked(followed)
        except StorageError as error:
            if str(error) != followed.trouble:
                _log.warning("%s: %s", followed.stream, error)
            followed.trouble = str(error)
            _pause(followed)
            self._finished(followed, None)
        except Exception:  # noqa: BLE001 - a defect must not end the pool's thread unseen
            _log.exception("%s: could not be looked at", followed.stream)
            self._finished(followed, self._period)
        else:
            if followed.trouble is not None:
                _log.warning("%s: its spool works again", followed.stream)
            followed.trouble = None
            reach("samples-seen")
            self._committer.submit(work)

    def _laggard(self, stream: str) -> JobState | None:
        """A live job that has not taken all that was counted of its dataset."""
        dataset = self._world.dataset(stream)
        if dataset is None or not dataset.is_live or dataset.mark is None:
            return None
        for job_stream in sorted(self._world.jobs_of(stream)):
            job = self._world.get(job_stream)
            if isinstance(job, JobState) and not job.starts_at_end and place_of(job, dataset)[0] < dataset.records:
                return job
        return None

    def _is_awaited(self, stream: str) -> bool:
        """Whether a job waits to be placed at the dataset's end, which a look finds."""
        jobs = (self._world.get(job) for job in self._world.jobs_of(stream))
        return any(isinstance(job, JobState) and job.starts_at_end for job in jobs)

    def _looked(self, followed: _Followed) -> Observed:
        return self._observed(followed, followed.follower.look(keep=bool(self._world.jobs_of(followed.stream))))

    def _observed(self, followed: _Followed, look: Look) -> Observed:
        """A look as work; one that failed at a server makes the next one wait."""
        if followed.path is None and isinstance(look, Unreadable) and not is_of_data(look.code):
            _pause(followed)
        else:
            followed.failures, followed.pause = 0, 0.0
        return Observed(self._sighting(followed), look)

    def _reread(self, followed: _Followed, job: JobState) -> Reread | Observed | None:
        """What a job lacks; None if a look must first say what the file is now."""
        dataset = self._world.dataset(followed.stream)
        if dataset is None or dataset.mark is None:
            return None
        mark = Mark.from_json(dataset.mark)
        rows, offset = place_of(job, dataset)
        try:
            batch = followed.follower.reread(rows=rows, offset=offset, until=mark)
        except StorageError as error:
            if error.code == "changed":
                return None
            if not isinstance(error, UnreadableError):
                raise
            return self._observed(followed, Unreadable(error.code, f"{followed.url}: {error}"))
        followed.failures, followed.pause = 0, 0.0
        return Reread(self._sighting(followed), job, dataset.epoch, batch, mark)

    def _tend(self, followed: _Followed) -> None:
        """Put back what live jobs need and the spool lost, and free it below the oldest record that they need."""
        namespace, _, name = parts_of(followed.stream)
        needed: list[tuple[int, int]] = []
        for job in self._world.jobs():
            if job.is_live and job.namespace == namespace:
                needed += job.needed_of(name)
        again_in = self._lost.restore(followed.stream, followed.spool, followed.follower, needed)
        if again_in is not None:
            self._committer.later(again_in, lambda: self._request(followed))
        if self._world.has_broken_job(namespace):
            return
        dataset = self._world.dataset(followed.stream)
        end = 0 if dataset is None else self._committed_length(dataset)
        followed.spool.trim(min([end, *(first for first, _ in needed)]))

    def _sighting(self, followed: _Followed) -> Sighting:
        return Sighting(
            followed.stream,
            followed.url,
            followed.format,
            followed.follower,
            facts=lambda: Facts(stamp(self._clock.now()), self._zone),
            is_current=lambda: not followed.ended,
            finished=lambda again_in: self._finished(followed, again_in),
        )


def _pause(followed: _Followed) -> None:
    followed.failures += 1
    followed.pause = pause_after(followed.failures)
