"""What became of a decision: its files are on disk, its model is deployed, or it did not work yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lc_events.domain import events as e
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve
from lc_events.domain.steps import Steps
from lc_events.messages.json import JsonObject

__all__ = ["FAILURE_PAUSE", "record_failure", "record_files", "record_model"]

FAILURE_PAUSE = timedelta(hours=1)
"""How often the same failure is recorded again."""

_Decision = tuple[list[e.Event], JobState]


def record_files(
    state: JobState, stage: str, round_: int, files: Sequence[JsonObject], now: str, *, intent: int | None = None
) -> _Decision:
    """The sample files of an intent are on disk; a late answer to another one is ignored."""
    steps = Steps(state, now, evolve)
    event = _answered(state, stage, round_, intent)
    if isinstance(event, e.TrainingTriggered):
        steps.add(e.TrainDataWritten, round=round_, input=event.input, files=files, resource_kind=state.kind)
    elif isinstance(event, e.EvaluationTriggered):
        steps.add(e.EvalDataWritten, round=round_, input=event.input, files=files, resource_kind=state.kind)
    return steps.events, steps.state


def _answered(
    state: JobState, stage: str, round_: int, version: int | None
) -> e.TrainingTriggered | e.EvaluationTriggered | e.DeployTriggered | None:
    """What was to be done, if it is still to be done; rounds repeat in the next generation, versions never do."""
    intent = state.intent
    if intent is None or (intent.stage, intent.round) != (stage, round_) or version not in (None, intent.version):
        return None
    return intent.event


def record_model(
    state: JobState, round_: int, *, url: str, sha256: str, size: int, now: str, intent: int | None = None
) -> _Decision:
    """The model is deployed; a late answer to another intent is ignored."""
    steps = Steps(state, now, evolve)
    event = _answered(state, "Deploy", round_, intent)
    if isinstance(event, e.DeployTriggered) and event.model is not None:
        steps.add(
            e.ModelDeployed,
            round=round_,
            model=event.model,
            url=url,
            format=str(event.model.get("format") or ""),
            sha256=sha256,
            size=size,
            resource_kind=state.kind,
        )
    return steps.events, steps.state


def record_failure(
    state: JobState,
    stage: str,
    round_: int,
    *,
    attempt: int,
    code: str,
    error: str,
    final: bool,
    now: str,
    intent: int | None = None,
) -> _Decision:
    """An intent did not become a fact: recorded at first, when the error changes, and once an hour.

    Only a model can be given up: samples that cannot be written yet are tried again for ever.
    """
    steps = Steps(state, now, evolve)
    event, failure = _answered(state, stage, round_, intent), state.failure
    if event is None:
        return steps.events, steps.state
    model = event.model if isinstance(event, e.DeployTriggered) else None
    final = final and model is not None
    is_news = failure is None or (failure.code, failure.error) != (code, error)
    if final or is_news or _elapsed(failure.time if failure else now, now) >= FAILURE_PAUSE:
        steps.add(
            e.TriggerFailed,
            stage=stage,
            round=round_,
            attempt=attempt,
            code=code,
            error=error,
            final=final,
            model=model,
            resource_kind=state.kind,
        )
    return steps.events, steps.state


def _elapsed(since: str, now: str) -> timedelta:
    return abs(datetime.fromisoformat(now) - datetime.fromisoformat(since))
