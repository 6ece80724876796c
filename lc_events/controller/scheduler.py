"""When waiting jobs are ticked: by their period, at the opening of their window, at the start, and when asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from lc_events.controller.committer import Committer
from lc_events.controller.transaction import Transaction
from lc_events.controller.world import State, World, dataset_stream
from lc_events.domain.dataset import DatasetState
from lc_events.domain.decisions import Facts, tick
from lc_events.domain.job import JobState
from lc_events.domain.stamp import stamp
from lc_events.domain.window import is_open
from lc_events.runtime.clock import Clock

__all__ = ["DEFAULT_PERIOD", "Scheduler", "TickWork"]

DEFAULT_PERIOD = 60.0
"""Seconds between ticks of a job whose trigger names no `checkPeriodSeconds` (Sedna's own default)."""
_LOOK_AT_WALL_CLOCK = 1.0
_COUNTED_EVERY = timedelta(hours=1)


class TickWork:
    """Ticks of several jobs in one commit."""

    def __init__(self, scheduler: Scheduler, streams: Collection[str], cause: str) -> None:
        self._scheduler = scheduler
        self._streams = streams
        self._cause = cause

    def announced(self) -> Collection[tuple[str, str]]:
        """Nothing: a tick is never a repeat."""
        return ()

    def carry_out(self, transaction: Transaction) -> None:
        """Tick those that still wait."""
        now = self._scheduler.now()
        for stream in self._streams:
            self._scheduler.tick(transaction, stream, now=now, cause=self._cause)

    def failed(self, error: Exception) -> None:
        """Nobody waits for a tick; the next one comes."""


class Scheduler:
    """Runs on the committer's thread, by its timers.

    Ticks fall on multiples of a job's period since the start, so that the ticks of many jobs share a commit. Jobs that
    their window keeps waiting are looked at by the wall clock every second, so that no jump of it, forward or back,
    makes us miss an opening.
    """

    def __init__(
        self,
        committer: Committer,
        world: World,
        clock: Clock,
        *,
        zone: str,
        period: float | None,
        decisive_only: bool = False,
        model_places: tuple[str, ...] = (),
    ) -> None:
        self._committer = committer
        self._world = world
        self._clock = clock
        self._zone = zone
        self._period = period
        self._decisive_only = decisive_only
        self._model_places = model_places
        self._uncounted: dict[str, int] = {}
        self._began = clock.monotonic()
        self._periods: set[float] = set()
        self._shut_out: set[str] = set()

    def start(self) -> None:
        """Look at every waiting job at once, for the world went on while we were away."""
        waiting = [job.stream for job in self._world.jobs() if job.is_waiting]
        if waiting:
            self._committer.submit(TickWork(self, waiting, "restart"))
        self.consider(self._world.jobs())
        self._committer.later(_LOOK_AT_WALL_CLOCK, self._look_at_openings)

    def now(self) -> str:
        """The receipt time of a tick."""
        return stamp(self._clock.now())

    def tick(self, transaction: Transaction, stream: str, *, now: str, cause: str, as_of: str | None = None) -> None:
        """Tick one job within a commit, with what is wrong with its dataset as a fact."""
        job = transaction.job(stream)
        note = transaction.note_of(dataset_stream(job))
        count = self._uncounted.pop(stream, 0) + 1
        facts = Facts(now, self._zone, note, self._model_places)
        events, state = tick(job, facts, cause=cause, as_of=as_of, count=count)
        if self._decisive_only and len(events) == 1 and not _is_news(job, state, now):
            self._uncounted[stream] = count
        else:
            transaction.keep((events, state))

    def tick_all(self, transaction: Transaction, now: str, as_of: str | None) -> None:
        """One tick of every waiting job, as somebody asked for."""
        for stream in [job.stream for job in self._world.jobs()]:
            self.tick(transaction, stream, now=now, cause="external", as_of=as_of)

    def consider(self, states: Iterable[State]) -> None:
        """Take note of changed jobs: their period, and the opening of a window that keeps them waiting.

        One whose next stage came while files were still being written is looked at again now that they are, and one
        without samples when what is wrong with its dataset changed.
        """
        for state in states:
            if isinstance(state, DatasetState):
                self._tell_of(state)
                continue
            if state.is_waiting:
                self._begin_period(self._period_of(state))
                if state.intent is None and state.verdict is not None and state.verdict.reason == "in_progress":
                    self._committer.submit(TickWork(self, [state.stream], "finished"))
            self._note_window(state)

    def _tell_of(self, dataset: DatasetState) -> None:
        jobs = [self._world.get(stream) for stream in sorted(self._world.jobs_of(dataset.stream))]
        if waiting := [job.stream for job in jobs if isinstance(job, JobState) and _is_told_else(job, dataset.note)]:
            self._committer.submit(TickWork(self, waiting, "dataset"))

    def _period_of(self, job: JobState) -> float:
        return self._period or job.trigger.period or DEFAULT_PERIOD

    def _begin_period(self, period: float) -> None:
        if period not in self._periods:
            self._periods.add(period)
            self._wait_for(period)

    def _wait_for(self, period: float) -> None:
        elapsed = self._clock.monotonic() - self._began
        self._committer.later(period - elapsed % period, lambda: self._period_ended(period))

    def _period_ended(self, period: float) -> None:
        of_period = [job for job in self._world.jobs() if job.is_live and self._period_of(job) == period]
        if not of_period:
            self._periods.discard(period)
            return
        self._wait_for(period)
        if waiting := [job.stream for job in of_period if job.is_waiting]:
            self._committer.submit(TickWork(self, waiting, "period"))

    def _note_window(self, job: JobState) -> None:
        if job.is_waiting and job.verdict is not None and job.verdict.reason == "window":
            self._shut_out.add(job.stream)
        else:
            self._shut_out.discard(job.stream)

    def _look_at_openings(self) -> None:
        self._committer.later(_LOOK_AT_WALL_CLOCK, self._look_at_openings)
        now = self._clock.now()
        jobs = [self._world.get(stream) for stream in sorted(self._shut_out)]
        opened = [job.stream for job in jobs if isinstance(job, JobState) and _has_open_window(job, now)]
        if opened:
            self._shut_out.difference_update(opened)
            self._committer.submit(TickWork(self, opened, "window"))


def _is_told_else(job: JobState, note: str | None) -> bool:
    """Whether a job's verdict says something else of its dataset than is known now."""
    verdict = job.verdict
    is_about_data = verdict is not None and verdict.reason in ("no_samples", "dataset")
    return job.is_waiting and is_about_data and verdict is not None and verdict.note != note


def _has_open_window(job: JobState, now: datetime) -> bool:
    window = job.trigger.window
    return window is None or is_open(window, job.zone, now)


def _is_news(before: JobState, after: JobState, now: str) -> bool:
    """Whether a tick changed the verdict, or an hour passed since one was recorded."""
    old, new = before.verdict, after.verdict
    if old is None or new is None or (old.stage, old.reason, old.note) != (new.stage, new.reason, new.note):
        return True
    return abs(datetime.fromisoformat(now) - datetime.fromisoformat(old.time)) >= _COUNTED_EVERY
