"""What others see of a job and a dataset (CONTRACT sections 2 and 5), as JSON values made of the fold alone."""

from __future__ import annotations

from lc_events.domain.dataset import DatasetState
from lc_events.domain.eval_file import eval_pending_count
from lc_events.domain.job import JobState, Verdict
from lc_events.domain.trigger import show_threshold
from lc_events.domain.window import show_window
from lc_events.messages.json import JsonObject
from lc_events.messages.model_places import NOR_IN_A_PLACE

__all__ = ["dataset_view", "job_view", "show_samples", "verdict_detail"]


def job_view(state: JobState, node: str) -> JsonObject:
    """The job state of CONTRACT section 5; `stage` and `type` are null before GM's first condition."""
    return {
        "namespace": state.namespace,
        "name": state.name,
        "node": node,
        "version": state.version,
        "generation": state.generation,
        "deleted": state.deleted,
        "stage": state.stage,
        "type": state.type,
        "round": state.round,
        "gm_message": state.gm_message,
        "samples": {
            "seen": state.seen,
            "train_pending": state.train_pending_count,
            "eval_pending": eval_pending_count(state),
            "eval_versions": _eval_versions(state),
            "train_total": state.train_total,
            "eval_total": state.eval_total,
        },
        "triggers": {"train": state.train_status, "eval": state.eval_status, "deploy": state.deploy_status},
        "verdict": None if state.verdict is None else _verdict_view(state.verdict),
        "train_data_url": state.train_data_url,
        "eval_data_url": state.eval_data_url,
        "model": state.model,
        "counts": {
            "ticks": state.ticks,
            "gm_messages": state.gm_messages,
            "worker_results": state.worker_results,
            "duplicates": state.duplicates,
        },
        "updated": state.updated,
    }


def _eval_versions(state: JobState) -> int:
    """Rounds of the eval window that hold any sample, the next one included."""
    round_ = state.next_eval_round
    held = sum(1 for _, ranges in state.eval_window(round_) if ranges)
    return held + (1 if state.eval_pending or state.eval_ranges(round_) else 0)


def _verdict_view(verdict: Verdict) -> JsonObject:
    return {
        "time": verdict.time,
        "stage": verdict.stage,
        "fired": verdict.reason == "fired",
        "reason": verdict.reason,
        "detail": verdict_detail(verdict),
    }


def verdict_detail(verdict: Verdict) -> str:
    """A verdict in words: `num_of_samples 2 is not > 3`."""
    trigger, samples = verdict.trigger, verdict.samples
    match verdict.reason:
        case "fired":
            return _fired_detail(verdict)
        case "samples":
            return f"{trigger.metric} {samples} is not {trigger.operator} {show_threshold(trigger.threshold)}"
        case "no_samples":
            return "no train sample is pending"
        case "metric":
            return f"the metric {trigger.metric!r} is not known here: it never fires"
        case "window":
            window = "" if trigger.window is None else show_window(trigger.window)
            return f"outside the window {window} ({verdict.zone}), {trigger.metric} {samples}"
        case "dataset":
            return verdict.note or "the dataset cannot be read"
        case "no_model":
            # The note is stored, and must be the same in every version; so it does not name the places itself.
            return f"{verdict.note}, {NOR_IN_A_PLACE}" if verdict.note else "no Train/Completed condition names a model"
        case "in_progress":
            return "the decision was made, and is not carried out yet"
    return verdict.note or verdict.reason


def _fired_detail(verdict: Verdict) -> str:
    trigger, samples = verdict.trigger, verdict.samples
    if verdict.stage == "Deploy":
        return "the evaluated model is to be deployed"
    if verdict.stage == "Eval":
        return f"{samples} samples are to be evaluated"
    if trigger.operator is None:
        return f"{trigger.metric} {samples}, without a condition"
    return f"{trigger.metric} {samples} is {trigger.operator} {show_threshold(trigger.threshold)}"


def show_samples(count: int) -> str:
    """`1 sample`, `4 samples`."""
    return f"{count} sample" if count == 1 else f"{count} samples"


def dataset_view(state: DatasetState) -> JsonObject:
    """The payload of the datasets topic; `samples` are the records that the file holds now."""
    return {
        "samples": state.records,
        "url": state.url,
        "format": state.format,
        "error": None if state.problem is None else state.problem.error,
        "gm_message": state.gm_message,
        "time": state.updated,
    }
