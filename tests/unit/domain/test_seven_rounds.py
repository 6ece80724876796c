from __future__ import annotations

from typing import Any

import pytest
from support.given import History, arrive, copied, given, reported, written
from support.recordings import rounds
from support.sedna import down

from lc_events.domain import events as e
from lc_events.domain.decisions import Facts, receive_gm_message
from lc_events.messages.json import JsonObject

NOW = "2024-01-01T00:00:00.000000Z"


def report(event: e.Event) -> JsonObject:
    """What an event says upstream."""
    match event:
        case e.TrainDataWritten():
            return {"phase": "Train", "status": "Ready", "input": event.input, "output": None}
        case e.EvalDataWritten():
            return {"phase": "Eval", "status": "Ready", "input": event.input, "output": None}
        case e.ModelDeployed():
            return {"phase": "Deploy", "status": "Ready", "input": {"models": [event.model]}, "output": None}
        case e.WorkerResultReceived():
            output = {"models": event.results, "ownerInfo": event.owner_info}
            return {"phase": event.kind, "status": event.status, "output": output}
    raise AssertionError(event)


@pytest.mark.parametrize(("name", "header"), [("happy_txt", None), ("happy_csv", "img,label")])
def test_seven_rounds_report_what_sedna_reported(name: str, header: str | None):
    history, conditions = given(), []
    compared: list[str] = []
    for round_steps in rounds(name, 7):
        for step in round_steps:
            match step.kind, step.name:
                case "append", _:
                    history = appended(history, header)
                case "down", "lifelonglearningjob":
                    conditions += step.content["status"]["conditions"]
                    history = told(history, step.content, conditions)
                    if len(compared) == 0:
                        history = history.when(arrive(10, header=header))
                case "worker", _:
                    message = step.content
                    history = history.when(reported(message["kind"], message["status"], message["results"]))
                case "up", "LifelongLearningJob":
                    history = fulfilled(history)
                    assert report(history.decided[-1]) == step.content
                    compared.append(f"{step.content['phase']}/{step.content['status']}")
    assert compared == ["Train/Ready", "train/completed", "Eval/Ready", "eval/completed", "Deploy/Ready"] * 7
    assert history.replayed() == history.state
    assert (history.state.round, history.state.train_total, history.state.eval_total) == (7, 56, 14)
    assert [t.samples for t in history.of(e.EvaluationTriggered)] == [2, 4, 6, 8, 10, 10, 10]


def appended(history: History, header: str | None) -> History:
    """Ten more samples; before the job is there they lie in the dataset."""
    return history.when(arrive(10, header=header)) if history.state.is_live else history


def told(history: History, content: dict[str, Any], conditions: list[JsonObject]) -> History:
    message = down({**content, "status": {**content["status"], "conditions": list(conditions)}})
    return history.when(lambda state: receive_gm_message(state, message, Facts(NOW)))


def fulfilled(history: History) -> History:
    """What was decided last is done: sample files written, the model copied."""
    intent = history.state.intent
    if intent is None:
        return history
    return history.when(copied() if intent.stage == "Deploy" else written())
