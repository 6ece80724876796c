"""What jobs wait for: reports that the global manager has not confirmed, effects that fail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lc_events.controller.world import World
from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.domain.job import JobState
from lc_events.domain.pauses import LONGEST_PAUSE

__all__ = ["check_effects", "check_reports"]

_SOON = 600
"""Seconds after which a report that nobody confirmed is a fault: repeats then come every 10 minutes."""


def check_reports(world: World, now: datetime) -> Iterator[Finding]:
    """Reports and results that are repeated because GM does not say that it has them."""
    since = [unconfirmed.time for job in world.jobs() if job.is_live for unconfirmed in job.unconfirmed]
    since += [data.updated for data in world.datasets() if data.is_live and data.unconfirmed is not None]
    if not since:
        yield ok("reports", "the global manager has confirmed all of them")
        return
    oldest = _age(min(since), now)
    says = f"{len(since)} not confirmed by the global manager, the oldest for {_duration(oldest)}"
    advice = "does the global manager run, and is the link up? They are repeated until it confirms them"
    yield wrong("reports", says, advice) if oldest > _SOON else note("reports", says, advice)


def check_effects(world: World, now: datetime) -> Iterator[Finding]:
    """Files that cannot be written, models that cannot be copied; they are tried again for ever."""
    failing = [job for job in world.jobs() if job.is_live and job.failure is not None and job.intent is not None]
    for job in failing:
        yield _failure(job, now)
    if not failing:
        yield ok("effects", "nothing that a job decided has failed")


def _failure(job: JobState, now: datetime) -> Finding:
    failure, intent = job.failure, job.intent
    if failure is None or intent is None:
        raise ValueError("the job has no failure")
    says = f"{job.namespace}/{job.name}: {intent.stage} of round {intent.round}: {failure.error}"
    attempts = f"for {_duration(_age(failure.since, now))}, tried again at least every {LONGEST_PAUSE:.0f} s"
    return wrong("effects", f"{says} ({attempts})", _ADVICE.get(failure.code, "correct what the message names"))


_ADVICE = {
    "no_space": "make room on the disk",
    "denied": "give the controller's user, or its credential, the right to write there",
    "credential": "correct the annotation sedna.io/credential",
    "missing": "the file is gone: bring it back",
}


def _age(time: str, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(time)).total_seconds()
    except (ValueError, TypeError):
        return (now - datetime.fromtimestamp(0, UTC)).total_seconds()


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
