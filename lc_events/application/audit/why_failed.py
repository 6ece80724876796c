"""What failed lately and is over: the worker that ended a round, a model that was given up."""

from __future__ import annotations

from typing import NamedTuple

from lc_events.application.audit import wording
from lc_events.application.audit.recall import Recall
from lc_events.domain import events as e
from lc_events.messages.json import JsonObject

__all__ = ["Failed", "failed"]


class Failed(NamedTuple):
    """A failure: words to add to the sentence (none if that says it already), and its facts."""

    words: str
    facts: JsonObject


def failed(recall: Recall) -> list[Failed]:
    """What is to be named beside where the job stands."""
    found = (_worker(recall), _deployment(recall))
    return [failure for failure in found if failure is not None]


def _worker(recall: Recall) -> Failed | None:
    """The worker whose failure ended the last round, while training waits again."""
    state = recall.state
    if not state.is_waiting or state.stage != "Train":
        return None
    result, training = recall.newest(e.WorkerResultReceived), recall.newest(e.TrainingTriggered)
    if result is None or training is None or training.round != state.round:
        return None
    if result.originator_version < training.originator_version or result.status.lower() != "failed":
        return None
    lost = "; its samples are not trained again" if result.kind.lower() == "train" else ""
    ended = f"round {state.round} ended {recall.clock(result.time)}"
    words = f"{ended}, as its {result.kind} worker failed{wording.failure(result.owner_info)}{lost}"
    return Failed(words, {"failed_worker": result.worker, "failed_kind": result.kind, "failed_at": result.time})


def _deployment(recall: Recall) -> Failed | None:
    """The model that was given up, as long as no later one is deployed."""
    failure, state = recall.given_up(), recall.state
    if failure is None:
        return None
    facts: JsonObject = {
        "failed_deploy_round": failure.round,
        "failed_deploy_code": failure.code,
        "failed_deploy_error": failure.error,
        "failed_deploy_at": failure.time,
    }
    is_told = state.stage == "Deploy" and state.intent is None and state.failure is not None and not state.is_waiting
    at = recall.clock(failure.time)
    return Failed(
        "" if is_told else f"the model of round {failure.round} could not be deployed {at}: {failure.error}", facts
    )
