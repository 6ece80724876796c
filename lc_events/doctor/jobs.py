"""What jobs wait for: reports that the global manager has not confirmed, effects that fail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lc_events.application.given_up import given_up
from lc_events.application.journal import Journal
from lc_events.controller.lost_samples import WHAT_TO_DO
from lc_events.controller.world import World
from lc_events.datasets.segment import GONE
from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.domain import events as e
from lc_events.domain.job import Failure, JobState
from lc_events.domain.pauses import LONGEST_PAUSE
from lc_events.messages.secrets import CREDENTIAL

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
    advice = (
        "does the global manager run, does it know the job, and is the link up? "
        "They are repeated until it confirms them"
    )
    yield wrong("reports", says, advice) if oldest > _SOON else note("reports", says, advice)


def check_effects(world: World, journal: Journal, now: datetime) -> Iterator[Finding]:
    """Files that cannot be written, models that cannot be copied, tried again for ever; and models given up."""
    is_fine = True
    for job in world.jobs():
        if not job.is_live:
            continue
        if job.failure is not None and job.intent is not None:
            is_fine = False
            yield _failure(job, now)
        if (final := given_up(journal, job.stream, until=job.version)) is not None:
            is_fine = False
            yield _given_up(job, final, now)
    if is_fine:
        yield ok("effects", "nothing that a job decided has failed")


def _given_up(job: JobState, final: e.TriggerFailed, now: datetime) -> Finding:
    when = f"was given up {_duration(_age(final.time, now))} ago"
    says = f"{job.namespace}/{job.name}: {final.stage} of round {final.round} {when}: {final.error}"
    return wrong("effects", says, f"{_WORKER.get(final.code, _WORKER_REPORTS)}; the next round deploys again")


def _failure(job: JobState, now: datetime) -> Finding:
    failure, intent = job.failure, job.intent
    if failure is None or intent is None:
        raise ValueError("the job has no failure")
    says = f"{job.namespace}/{job.name}: {intent.stage} of round {intent.round}: {failure.error}"
    attempts = f"for {_duration(_age(failure.since, now))}, tried again at least every {LONGEST_PAUSE:.0f} s"
    return wrong("effects", f"{says} ({attempts})", _advice(failure))


def _advice(failure: Failure) -> str:
    if failure.code in GONE and WHAT_TO_DO not in failure.error:  # the controller still looks for them
        return "nothing to do; it is repaired by itself"
    return _ADVICE.get(failure.code, "correct what the message names")


_ADVICE = {
    "no_space": "make room on the disk",
    "denied": "give the controller's user, or the job's credential, the right to what the message names: to read it, "
    "or to write there",
    "credential": f"correct the annotation {CREDENTIAL}",
    "missing": "the file is gone: bring it back",
}

_WORKER_REPORTS = "have the worker write the model as a file where it reports it"
_WORKER = {"outside": "have the worker write below the job's outputDir, or set LC_MODEL_PLACES to where models may lie"}


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
