"""Whole rounds of a job, from samples to the deployed model, with a minute between one message and the next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson

from lc_events.domain import decisions as d
from lc_events.domain.events import RULES
from lc_events.messages.worker import read_worker
from support.given import Command, History, arrive, copied, facts, given, gm, ticked, written
from support.sedna import JOB, condition, output

BEGAN = datetime.fromisoformat("2024-01-01T00:00:00Z")


class Rounds:
    """Commands in the order in which they come; `job` are fields of the job's resource, as its trigger.

    `rules` are those by which the program of the time decided.
    """

    def __init__(self, *, zone: str = "UTC", began: datetime = BEGAN, rules: int = RULES, **job: Any) -> None:
        self.commands: list[Command] = []
        self.conditions: list[Any] = []
        self.now = began
        self.places: tuple[str, ...] = ()
        self._zone = zone
        self._rules = rules
        self._job = job
        self._round = 0
        self.told("Train/Waiting", operation="insert")

    def wait(self, minutes: float = 1) -> Rounds:
        self.now += timedelta(minutes=minutes)
        return self

    @property
    def time(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    @property
    def facts(self) -> d.Facts:
        self.wait()
        return facts(self.time, self._zone, places=self.places, rules=self._rules)

    def then(self, command: Command) -> Rounds:
        self.commands.append(command)
        return self

    def open_places(self, *places: str) -> Rounds:
        """From the next message or tick on the node has these model places."""
        self.places = places
        return self

    def ticked(self) -> Rounds:
        return self.then(ticked(at=self.facts))

    def arrive(self, count: int) -> Rounds:
        return self.then(arrive(count, at=self.facts))

    def told(self, *stages: str, operation: str = "update", urls: tuple[str, ...] = ()) -> Rounds:
        at = self.facts
        for stage in stages:
            data = output(*urls) if stage.endswith("/Completed") and urls else None
            self.conditions.append(condition(*stage.split("/"), f"{at.now}#{len(self.conditions)}", data))
        message_id = f"m-{len(self.commands)}"
        return self.then(gm(*self.conditions, operation=operation, message_id=message_id, at=at, **self._job))

    def worker(self, kind: str, status: str, *results: Any, name: str = "w1") -> Rounds:
        now = self.facts.now
        message = {"name": name, "ownerName": "job1", "ownerKind": JOB, "kind": kind, "status": status}
        worker = read_worker(orjson.dumps({**message, "results": results}), worker=name)
        return self.then(lambda state: d.receive_worker_result(state, worker, now))

    def changed(self, **job: Any) -> Rounds:
        """GM sends the job with other fields, at the stage where it is."""
        self._job |= job
        return self.told()

    def trained(self, minutes: float = 1) -> Rounds:
        """What was decided gets done, and the round goes on until training waits again."""
        self.evaluated(minutes).wait().then(copied(self.time))
        return self.told("Deploy/Ready", "Deploy/Completed", "Train/Waiting")

    def evaluated(self, minutes: float = 1) -> Rounds:
        """What was decided gets done, and the round goes on until its model is to be deployed."""
        self._round += 1
        model = f"/output/job1/train/{self._round}/model.pkl"
        result = {"format": "pkl", "url": model, "metrics": {"accuracy": 0.5}}
        self.wait().then(written(self.time))
        self.told("Train/Ready", "Train/Starting").worker("train", "running").told("Train/Running").wait(minutes)
        self.worker("train", "completed", result).told("Train/Completed", "Eval/Waiting", urls=(model,))
        self.wait().then(written(self.time)).told("Eval/Ready", "Eval/Starting", "Eval/Running").wait(minutes)
        return self.worker("eval", "completed", result).told("Eval/Completed", "Deploy/Waiting", urls=(model,))

    def history(self) -> History:
        return given(*self.commands)


def two_rounds(**job: Any) -> Rounds:
    """Two whole rounds and a third that waits: more than 3 pending samples train, of which 8 of 10 may."""
    rounds = Rounds(**job).ticked().arrive(4).ticked().arrive(5).trained()
    return rounds.ticked().arrive(3).arrive(6).trained().ticked().arrive(2).ticked()
