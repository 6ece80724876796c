"""What decisions set off, outside the committer: sample files, the deployed model, a job's folders."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from lc_events.controller.committer import Committer
from lc_events.controller.lanes import Lanes
from lc_events.controller.locations import Locations
from lc_events.controller.sample_index import sample_index
from lc_events.controller.transaction import Transaction
from lc_events.controller.world import State, World
from lc_events.datasets.header import header_bytes
from lc_events.domain import events as e
from lc_events.domain.job import Intent, JobState, output_place
from lc_events.domain.outcomes import record_failure, record_files, record_model
from lc_events.domain.pauses import pause_after
from lc_events.domain.stamp import stamp
from lc_events.errors import StorageError
from lc_events.faults import reach
from lc_events.messages.json import JsonObject
from lc_events.messages.names import DATASET_KIND, stream_id
from lc_events.runtime.clock import Clock
from lc_events.storage.port import WrittenFile

__all__ = ["Effects"]

_log = logging.getLogger("lc_events.effects")

_STOP_SECONDS = 8.0
_NEVER = ("outside", "not_a_file")
"""What time does not mend in a model."""
_FOLDERS = ("data/train", "data/eval", "train", "eval")

Spooled = Callable[[str, int, int], Iterator[bytes]]
"""Records `[first, last)` of a dataset's spool (its stream first), as bytes in chunks."""
Done = Callable[[Transaction, JobState, str], None]


class _Finished:
    """The outcome of an effect, to be recorded as a fact; `again` is called where that was not possible."""

    def __init__(self, stream: str, record: Done, clock: Clock, again: Callable[[], None]) -> None:
        self._stream = stream
        self._record = record
        self._clock = clock
        self._again = again

    def announced(self) -> Collection[tuple[str, str]]:
        return ()

    def carry_out(self, transaction: Transaction) -> None:
        self._record(transaction, transaction.job(self._stream), stamp(self._clock.now()))
        transaction.then(lambda: reach("effect-recorded"))

    def failed(self, error: Exception) -> None:
        _log.error("%s: what was done could not be recorded: %s", self._stream, error)
        self._again()


class Effects:
    """Carries out intents, a few at a time, until they are facts; each may be done twice without harm.

    What fails is tried again for ever, after 1 s, 2 s … 60 s, and at once when GM sends the job again, for it may bring
    a new credential. Only a model that does not exist, is no file, or lies where no model counts, is given up. Into one
    outputDir only one effect writes at a time: the next generation of a job uses the same paths as the one before.
    """

    def __init__(
        self, committer: Committer, world: World, clock: Clock, *, locations: Locations, spooled: Spooled
    ) -> None:
        self._committer = committer
        self._world = world
        self._clock = clock
        self._locations = locations
        self._spooled = spooled
        self._lanes = Lanes("effects")
        self._begun: dict[str, int] = {}
        self._busy: set[str] = set()
        self._due: dict[str, tuple[JobState, Intent, int]] = {}
        self._paused: dict[str, tuple[Intent, int, int]] = {}
        """What is tried again later, by job: the intent, which attempt that will be, and GM's messages so far."""
        self._with_folders: dict[str, int] = {}

    def start(self) -> None:
        """Take up what a stop or a crash left undone."""
        self.consider(self._world.jobs())

    def stop(self) -> None:
        """Let what has begun finish, if it does in a few seconds; nothing new begins."""
        self._lanes.stop(_STOP_SECONDS)

    def consider(self, states: Iterable[State]) -> None:
        """Begin what changed jobs intend; on the committer's thread."""
        for job in states:
            if not isinstance(job, JobState) or not job.is_live:
                continue
            if self._with_folders.get(job.stream) != job.generation:
                self._with_folders[job.stream] = job.generation
                self._lanes.submit(self._locations.lane_of_job(job), partial(self._make_folders, job))
            if job.intent is not None and self._begun.get(job.stream) != job.intent.version:
                self._begin(job, job.intent, attempt=1)
            elif (paused := self._paused.get(job.stream)) is not None and paused[2] != job.gm_messages:
                self._try_again(job.stream, *paused[:2])

    def _begin(self, job: JobState, intent: Intent, attempt: int) -> None:
        self._begun[job.stream] = intent.version
        self._paused.pop(job.stream, None)
        place = output_place(job.output_dir)
        if place in self._busy:
            self._due[place] = (job, intent, attempt)
        else:
            self._busy.add(place)
            self._lanes.submit(self._lane_of(job, intent), partial(self._carry_out, job, intent, attempt))

    def _lane_of(self, job: JobState, intent: Intent) -> str:
        event = intent.event
        if isinstance(event, e.DeployTriggered) and event.model is not None:
            return self._locations.lane_of_copy(job, str(event.model["url"]))
        return self._locations.lane_of_job(job)

    def _ended(self, place: str) -> None:
        self._busy.discard(place)
        if (due := self._due.pop(place, None)) is not None:
            job, intent, attempt = due
            self._try_again(job.stream, intent, attempt)

    def _make_folders(self, job: JobState) -> None:
        """The four folders that Sedna makes at insert; where that fails, writing says so in time."""
        try:
            storage = self._locations.storage(job, job.output_dir)
            for folder in _FOLDERS:
                storage.make_folder(f"{job.output_dir}/{folder}", within=job.output_dir)
        except StorageError as error:
            _log.warning("%s: %s", job.stream, error)

    def _carry_out(self, job: JobState, intent: Intent, attempt: int) -> None:
        try:
            if intent.round <= 1:
                self._make_folders(job)  # before the first report, whatever thread the insert's own making waits for
            record = self._perform(job, intent)
        except StorageError as error:
            self._note_failure(job, intent, attempt, error)
        except Exception as error:  # noqa: BLE001 - a defect must not end the pool's thread unseen
            _log.exception("%s: %s of round %d", job.stream, intent.stage, intent.round)
            self._note_failure(job, intent, attempt, StorageError(repr(error), code="internal"))
        else:
            reach("effect-done")
            self._committer.submit(
                _Finished(job.stream, record, self._clock, lambda: self._again_later(job, intent, attempt))
            )
        finally:
            self._committer.later(0.0, lambda: self._ended(output_place(job.output_dir)))

    def _perform(self, job: JobState, intent: Intent) -> Done:
        event = intent.event
        if isinstance(event, e.DeployTriggered):
            return self._deploy(job, intent, event)
        files = self._write_files(job, event)
        return lambda transaction, state, now: _keep(
            transaction, record_files(state, intent.stage, intent.round, files, now, intent=intent.version)
        )

    def _write_files(self, job: JobState, event: e.TrainingTriggered | e.EvaluationTriggered) -> list[JsonObject]:
        url = str(event.input["dataURL"])
        storage = self._locations.storage(job, url)
        if isinstance(event, e.EvaluationTriggered) and event.existing and storage.exists(url):
            written = [WrittenFile(url, storage.stat(url).size, storage.sha256(url))]
        else:
            written = [storage.write(url, self._records(job, event), within=job.output_dir)]
        if event.indexed is not None:
            index = sample_index(self._records(job, event), event.indexed)
            written.append(storage.write(str(event.input["dataIndexURL"]), index, within=job.output_dir))
        return [
            {"url": file.url, "size": file.size, "sha256": file.sha256, "records": event.samples} for file in written
        ]

    def _records(self, job: JobState, event: e.TrainingTriggered | e.EvaluationTriggered) -> Iterator[bytes]:
        if event.header is not None:
            yield header_bytes(event.header) + b"\n"
        for first, last in event.spooled:
            yield from self._spooled(stream_id(job.namespace, DATASET_KIND, event.dataset), first, last)

    def _deploy(self, job: JobState, intent: Intent, event: e.DeployTriggered) -> Done:
        target = str(event.target)
        copied = self._locations.copy(job, str((event.model or {})["url"]), target)
        return lambda transaction, state, now: _keep(
            transaction,
            record_model(
                state,
                event.round,
                url=target,
                sha256=copied.sha256,
                size=copied.size,
                now=now,
                intent=intent.version,
            ),
        )

    def _note_failure(self, job: JobState, intent: Intent, attempt: int, error: StorageError) -> None:
        final = intent.stage == "Deploy" and (error.missing or error.code in _NEVER)

        def record(transaction: Transaction, state: JobState, now: str) -> None:
            _keep(
                transaction,
                record_failure(
                    state,
                    intent.stage,
                    intent.round,
                    attempt=attempt,
                    code=error.code,
                    error=str(error),
                    final=final,
                    now=now,
                    intent=intent.version,
                ),
            )

        def again() -> None:
            self._again_later(job, intent, attempt)

        self._committer.submit(_Finished(job.stream, record, self._clock, again if final else _nothing))
        if not final:
            again()

    def _again_later(self, job: JobState, intent: Intent, attempt: int) -> None:
        now = self._world.get(job.stream)
        heard = job.gm_messages if now is None else now.gm_messages
        paused = self._paused[job.stream] = (intent, attempt + 1, heard)
        pause = pause_after(attempt) if heard == job.gm_messages else 0.0

        def pause_is_over() -> None:
            if self._paused.get(job.stream) is paused:
                self._try_again(job.stream, intent, attempt + 1)

        self._committer.later(pause, pause_is_over)

    def _try_again(self, stream: str, intent: Intent, attempt: int) -> None:
        self._paused.pop(stream, None)
        job = self._world.get(stream)
        if isinstance(job, JobState) and job.intent is not None and job.intent.version == intent.version:
            self._begin(job, job.intent, attempt)


def _nothing() -> None:
    pass


def _keep(transaction: Transaction, decision: tuple[list[e.Event], JobState]) -> None:
    transaction.keep(decision)
