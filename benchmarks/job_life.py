"""A job's history as the local controller writes it: mostly ticks, now and then samples, a round, its results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import orjson

from lc_events.domain import decisions as d
from lc_events.domain import outcomes
from lc_events.domain.events import Event
from lc_events.domain.job import JobState
from lc_events.messages.gm import read_down
from lc_events.messages.worker import read_worker

KIND = "lifelonglearningjob"
ZONE = "Europe/Berlin"
TICKS_A_ROUND = 80
KEPT_CONDITIONS = 40


def history(name: str, events: int) -> list[Event]:
    """The first so many events of a job."""
    return list(islice(Life(name).events(), events))


class Life:
    def __init__(self, name: str) -> None:
        self.name = name
        self.state = JobState(f"default/{KIND}/{name}")
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.conditions: list[dict[str, Any]] = []
        self.records = 0

    def events(self) -> Iterator[Event]:
        yield from self.moved("Train/Waiting")
        while True:
            for number in range(TICKS_A_ROUND):
                yield from self.ticked()
                if number % 8 == 7:
                    yield from self.arrived(12)
            yield from self.round()

    def round(self) -> Iterator[Event]:
        model = {"format": "pkl", "url": f"/output/{self.name}/train/{self.state.round}/model.pkl", "metrics": {"a": 1}}
        yield from self.written("Train")
        yield from self.moved("Train/Ready", "Train/Starting")
        yield from self.reported("train", "running")
        yield from self.moved("Train/Running")
        yield from self.reported("train", "completed", model)
        yield from self.moved("Train/Completed", "Eval/Waiting", model=model)
        yield from self.written("Eval")
        yield from self.moved("Eval/Ready", "Eval/Starting", "Eval/Running")
        yield from self.reported("eval", "completed", model)
        yield from self.moved("Eval/Completed", "Deploy/Waiting", model=model)
        copied = {"url": f"/output/{self.name}/deploy/index.pkl", "sha256": "5e" * 32, "size": 31_337}
        yield from self.decided(outcomes.record_model(self.state, self.state.round, now=self.time(), **copied))
        yield from self.moved("Deploy/Ready", "Deploy/Completed", "Train/Waiting")

    def time(self, seconds: int = 1) -> str:
        self.now += timedelta(seconds=seconds)
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def decided(self, decision: tuple[list[Event], JobState]) -> list[Event]:
        events, self.state = decision
        return events

    def ticked(self) -> list[Event]:
        return self.decided(d.tick(self.state, d.Facts(self.time(60), ZONE), cause="period"))

    def arrived(self, count: int) -> list[Event]:
        first, last = self.records, self.records + count
        self.records = last
        batch = d.Samples("ds", "/data/ds.txt", "txt", None, 1, (first, last), (first * 90, last * 90), (first, last))
        return self.decided(d.add_samples(self.state, batch, d.Facts(self.time(), ZONE)))

    def written(self, stage: str) -> list[Event]:
        url = f"/output/{self.name}/data/{stage.lower()}/{self.state.round}/data.txt"
        file = {"url": url, "size": 7200, "sha256": "a7" * 32, "records": 80}
        return self.decided(outcomes.record_files(self.state, stage, self.state.round, [file], self.time()))

    def reported(self, kind: str, status: str, *models: dict[str, Any]) -> list[Event]:
        message = {"name": "w", "ownerName": self.name, "ownerKind": KIND, "kind": kind, "status": status}
        payload = orjson.dumps({**message, "id": f"w-{self.state.version}", "results": models or None})
        return self.decided(d.receive_worker_result(self.state, read_worker(payload, worker="w"), self.time()))

    def moved(self, *stages: str, model: dict[str, Any] | None = None) -> list[Event]:
        for stage, type_ in (each.split("/") for each in stages):
            moved = {"type": type_, "status": "True", "stage": stage, "lastTransitionTime": self.time()}
            if type_ == "Completed" and model is not None:
                moved["data"] = orjson.dumps({"output": {"models": [model]}}).decode()
            self.conditions.append(moved)
        del self.conditions[:-KEPT_CONDITIONS]
        header = {"namespace": "default", "resourceKind": KIND, "resourceName": self.name, "operation": "update"}
        payload = {"id": f"gm-{self.state.version}", "header": header, "content": self.resource()}
        message = read_down(orjson.dumps(payload), kind=KIND, namespace="default", name=self.name)
        return self.decided(d.receive_gm_message(self.state, message, d.Facts(self.time(), ZONE)))

    def resource(self) -> dict[str, Any]:
        template = {"spec": {"containers": [{"image": "i", "command": ["python3"], "args": ["train.py"]}]}}
        condition = {"operator": ">", "threshold": 60, "metric": "num_of_samples"}
        trigger = {"condition": condition, "timer": {"start": "00:00", "end": "24:00"}}
        return {
            "apiVersion": "sedna.io/v1alpha1",
            "kind": "LifelongLearningJob",
            "metadata": {"name": self.name, "namespace": "default", "uid": "5f3c"},
            "spec": {
                "dataset": {"name": "ds", "trainProb": 0.8},
                "trainSpec": {"template": template, "trigger": trigger},
                "evalSpec": {"template": template},
                "deploySpec": {"template": template},
                "outputDir": f"/output/{self.name}",
            },
            "status": {"conditions": self.conditions},
        }
