"""Why a job did or did not train, evaluate, deploy at a moment: one sentence, and the facts that it rests on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple, cast

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import require_job_of_controller
from lc_events.application.audit.recall import Recall, Standing
from lc_events.application.audit.travel import version_at
from lc_events.application.audit.why_failed import failed
from lc_events.application.audit.why_training import not_trained
from lc_events.application.snapshot_json import State
from lc_events.domain import events as e
from lc_events.domain.job import Failure, Intent, JobState
from lc_events.domain.pauses import LONGEST_PAUSE, pause_after
from lc_events.domain.stamp import stamp
from lc_events.domain.trigger import show_threshold
from lc_events.domain.views import verdict_detail
from lc_events.messages.json import Json, JsonObject

__all__ = ["Why", "why"]

_EFFECTS = {
    "Train": ("its train file", "written"),
    "Eval": ("its eval file", "written"),
    "Deploy": ("it", "copied"),
}
"""What follows from a decision, and what is done with it."""
_GM = "global manager"


class Why(NamedTuple):
    """CONTRACT section 7, verb `why`."""

    sentence: str
    facts: JsonObject

    def to_json(self) -> JsonObject:
        """As it is answered."""
        return {"sentence": self.sentence, "facts": self.facts}


def why(archive: Archive[State], stream: str, *, now: str, time: str | None = None) -> Why:
    """Explain where a job stood at `time`, or stands `now`, from what was recorded until then.

    Both are RFC 3339 in UTC with microseconds, as events carry times. Raises NotFoundError if there was no event yet,
    UsageError for a stream that decides nothing.
    """
    require_job_of_controller(archive.kind, stream, "why")
    version = archive.journal.head(stream).version if time is None else version_at(archive, stream, time).version
    recall = Recall(archive, cast("JobState", archive.state(stream, version)), time or now)
    standing = _standing(recall)
    failures = failed(recall)
    sentence = "; ".join([standing.sentence, *(failure.words for failure in failures if failure.words)])
    facts = _facts(recall, standing)
    for failure in failures:
        facts = {**facts, **failure.facts}
    return Why(f"{sentence}.", facts)


def _facts(recall: Recall, standing: Standing) -> JsonObject:
    state, since = recall.state, standing.since
    elapsed = None if since is None else (recall.moment - datetime.fromisoformat(since)).total_seconds()
    verdict: dict[str, Json] = {}
    if state.verdict is not None:
        fired, detail = state.verdict.reason == "fired", verdict_detail(state.verdict)
        verdict = {"fired": fired, "reason": state.verdict.reason, "detail": detail, "verdict_time": state.verdict.time}
    return {
        "time": recall.time,
        "version": state.version,
        "generation": state.generation,
        "stage": state.stage,
        "type": state.type,
        "round": state.round,
        "waits_for": standing.waits_for,
        "since": since,
        "seconds": elapsed,
        **verdict,
        **(_training_facts(recall) if state.stage in ("Train", None) else {}),
        **standing.facts,
    }


def _training_facts(recall: Recall) -> JsonObject:
    """Metric, value, operator, threshold, window, zone: as they are, or as they were when the round fired."""
    state = recall.state
    if state.intent is None and (state.is_waiting or state.stage is None):
        return state.trigger.facts(state.train_pending_count, state.zone)
    fired = _training(recall)
    return state.trigger.facts(state.train_pending_count, state.zone) if fired is None else fired.facts


def _standing(recall: Recall) -> Standing:
    state = recall.state
    if not state.is_live:
        ended = state.deleted_at
        text = f"The job was deleted {recall.clock(ended)}" if ended else "The job was never inserted"
        return Standing(text, "nobody", ended)
    if state.intent is not None:
        return _being_done(recall, state.intent)
    if not state.is_waiting:
        return _passed_on(recall)
    if state.stage == "Train":
        return not_trained(recall)
    verdict = state.verdict
    detail = "it was not looked at yet" if verdict is None else verdict_detail(verdict)
    waits_for = _GM if verdict is not None and verdict.reason == "no_model" else "tick"
    return Standing(f"Round {state.round} has no {state.stage} yet: {detail}", waits_for, recall.condition_since())


def _being_done(recall: Recall, intent: Intent) -> Standing:
    """It was decided; what follows from it is under way, or fails."""
    failure, (effect, done), decided = recall.state.failure, _EFFECTS[intent.stage], _decided(recall, intent.stage)
    if failure is None:
        return Standing(f"{decided}; {effect} is being {done}", "storage", recall.time_of(intent.version))
    again = _next_try(failure, recall.moment)
    text = f"{decided}, but {effect} could not be {done} since {recall.clock(failure.since)[3:]}: {failure.error}"
    facts: JsonObject = {
        "code": failure.code,
        "error": failure.error,
        "attempt": failure.attempt,
        "failing_since": failure.since,
        "next_try": again,
    }
    return Standing(f"{text}; it is tried again within {LONGEST_PAUSE:.0f} s", "storage", failure.since, facts)


def _next_try(failure: Failure, moment: datetime) -> str:
    """When the next attempt is due: recorded are the first, each new error, and one an hour, not every attempt."""
    due = datetime.fromisoformat(failure.time)
    attempt = failure.attempt
    while due <= moment:
        pause = pause_after(attempt)
        if pause == LONGEST_PAUSE and (passed := (moment - due).total_seconds()) > pause:
            due += timedelta(seconds=passed // pause * pause)
        due += timedelta(seconds=pause)
        attempt += 1
    return stamp(due)


def _passed_on(recall: Recall) -> Standing:
    """The stage was reported, or others have it: whose turn it is."""
    state = recall.state
    report = None if state.waiting is None else state.report_of(state.waiting)
    if report is not None:
        reported = recall.time_of(report.version)
        confirmed = not state.unconfirmed.holds(report.version)
        when = f" {recall.clock(reported)}" if reported else ""
        what = "has it and is to go on" if confirmed else "has not confirmed it yet"
        facts: JsonObject = {"reported_version": report.version, "confirmed": confirmed}
        text = f"{_ended(recall, report.stage)}; that was reported{when}, and the global manager {what}"
        return Standing(text, _GM, reported, facts)
    since = recall.condition_since()
    waits_for, what = _turn(recall, since)
    return Standing(f"{_ended(recall, state.stage)}; {what}", waits_for, since)


def _turn(recall: Recall, since: str | None) -> tuple[str, str]:
    stage, type_, length = recall.state.stage, recall.state.type, recall.length_since(since)
    result = recall.newest(e.WorkerResultReceived)
    is_news = result is not None and since is not None and result.time >= since and result.status.lower() != "running"
    if type_ == "Ready":
        return _GM, f"the global manager is to start a worker, for {length} now"
    if type_ in ("Starting", "Running") and not is_news:
        verb = "starting" if type_ == "Starting" else "running"
        return "worker", f"its worker has been {verb} for {length}"
    if result is not None and is_news:
        told = f"worker {result.worker} reported {result.kind} {result.status} {recall.clock(result.time)}"
        return _GM, f"{told}, and the global manager is to go on"
    if type_ == "Failed":
        return _GM, f"{stage} failed {length} ago, and the global manager is to let it train again"
    if stage is None:
        return _GM, "the global manager has not said what it waits for"
    return _GM, f"it has stood at {stage}/{type_} for {length}, and the global manager is to go on"


def _ended(recall: Recall, stage: str | None) -> str:
    """What was decided last for a stage, or why it was given up: only a model ever is."""
    failure = recall.state.failure
    if stage != "Deploy" or failure is None:
        return _decided(recall, stage)
    return f"The model of round {recall.state.round} is not deployed: {failure.error}"


def _decided(recall: Recall, stage: str | None) -> str:
    """What was decided last for a stage: `Round 3 fired at 03:20: num_of_samples 512 is > 500`."""
    round_ = recall.state.round
    match stage:
        case "Train" if (fired := _training(recall)) is not None:
            return f"Round {round_} fired {recall.clock(fired.time)}{_rule(fired.facts)}"
        case "Eval" if (eval_ := recall.newest(e.EvaluationTriggered)) is not None and eval_.round == round_:
            return f"Round {round_} is evaluated on {eval_.samples} samples, as was decided {recall.clock(eval_.time)}"
        case "Deploy" if (deploy := recall.newest(e.DeployTriggered)) is not None and deploy.round == round_:
            return f"{_deployment(recall.state, deploy)}, as was decided {recall.clock(deploy.time)}"
    return f"Round {round_} was decided by another controller" if round_ else "No round was decided yet"


def _deployment(state: JobState, deploy: e.DeployTriggered) -> str:
    if deploy.model is None:
        return f"Round {deploy.round} has no model to deploy"
    return f"The model of round {deploy.round} is {'to be ' if state.intent is not None else ''}deployed"


def _rule(facts: JsonObject) -> str:
    threshold = facts.get("threshold")
    if not isinstance(threshold, (int, float)):
        return ""
    return f": {facts.get('metric')} {facts.get('value')} is {facts.get('operator')} {show_threshold(threshold)}"


def _training(recall: Recall) -> e.TrainingTriggered | None:
    """The decision that began the present round, if it was made here."""
    fired = recall.newest(e.TrainingTriggered)
    return fired if fired is not None and fired.round == recall.state.round else None
