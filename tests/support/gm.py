"""A global manager's job without broker and store, and what others say to it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from lc_events.domain.events import Event
from lc_events.gm import decisions
from lc_events.gm.decisions import Facts, Place
from lc_events.gm.job import GmJob, fold_job
from lc_events.messages.json import loads_object

STREAM = "default/lifelonglearningjob/job1"


def job_manifest(**changes: Any) -> dict[str, Any]:
    """A job whose workers somebody else runs, as in the golden recordings; `train_node`… place their templates."""
    spec = {
        "dataset": {"name": "ds", "trainProb": 0.8},
        "trainSpec": {
            "template": {"metadata": {}, "spec": {"containers": []}},
            "trigger": {"condition": {"operator": ">", "threshold": 3, "metric": "num_of_samples"}},
        },
        "evalSpec": {"template": {"metadata": {}, "spec": {"containers": []}}},
        "deploySpec": {"template": {"metadata": {}, "spec": {"containers": []}}},
        "outputDir": "/output/job1",
    }
    metadata = {"name": "job1", "namespace": "default", **changes.pop("metadata", {})}
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "LifelongLearningJob",
        "metadata": metadata,
        "spec": {**spec, **changes},
    }


def dataset_manifest(**changes: Any) -> dict[str, Any]:
    """The dataset that `job_manifest` names; `changes` are of its spec."""
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "Dataset",
        "metadata": {"name": "ds"},
        "spec": {"url": "/data/ds.txt", "format": "txt", "nodeName": "edge1", **changes},
    }


def template(
    node: str | None = None,
    *,
    env: Sequence[dict[str, Any]] = (),
    command: Sequence[str] = ("python",),
    args: Sequence[str] = ("work.py",),
) -> dict[str, Any]:
    """A stage with a program."""
    container = {"name": "worker", "image": "any", "command": list(command), "args": list(args), "env": list(env)}
    spec: dict[str, Any] = {"containers": [container]}
    return {"template": {"spec": {**spec, **({} if node is None else {"nodeName": node})}}}


def controller_says(phase: str, status: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """An LC's own report."""
    return {"phase": phase, "status": status, **({} if given is None else {"input": given}), "output": None}


def worker_says(
    kind: str, status: str, models: list[dict[str, Any]] | None = None, owner_info: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A worker's report, as an LC passes it on."""
    return {"phase": kind, "status": status, "output": {"models": models or [], "ownerInfo": owner_info}}


def train_input(round_: int = 1) -> dict[str, Any]:
    return {"dataURL": f"/output/job1/data/train/{round_}/data.txt", "outputDir": f"/output/job1/train/{round_}"}


def eval_input(round_: int = 1) -> dict[str, Any]:
    return {
        "models": [{"format": "pkl", "url": f"/output/job1/train/{round_}/index.pkl", "classes": None}],
        "dataURL": f"/output/job1/data/eval/{round_}/data.txt",
        "outputDir": f"/output/job1/eval/{round_}",
    }


def model(stage: str, round_: int = 1) -> dict[str, Any]:
    return {"format": "pkl", "url": f"/output/job1/{stage}/{round_}/index.pkl", "metrics": {"acc": [0.5]}}


class Manager:
    """One job decided step by step; `clock` is the time of the next command."""

    def __init__(self) -> None:
        self.job = GmJob(STREAM)
        self.events: list[Event] = []
        self.clock = "2026-05-09T08:00:00.000000Z"
        self._tokens = itertools.count(1)

    def apply(self, manifest: dict[str, Any] | None = None, *, node: str | None = "edge1") -> list[Event]:
        place = None if node is None else Place(node, "/data/ds.txt")
        return self._keep(decisions.apply_job(self.job, manifest or job_manifest(), place, self._facts()))

    def link(self, node: str) -> list[Event]:
        return self._keep(decisions.link_dataset(self.job, Place(node, "/data/ds.txt"), self.clock))

    def delete(self) -> list[Event]:
        return self._keep(decisions.delete_resource(self.job, self._facts()))

    def report(self, content: dict[str, Any], node: str = "edge1") -> list[Event]:
        return self._keep(decisions.receive_report(self.job, node, "id", content, self._facts()))

    def confirm(self, node: str = "edge1") -> list[Event]:
        version = self.job.deliveries[node].version
        return self._keep(decisions.confirm_delivery(self.job, node, version, self.clock))

    def train(self, round_: int = 1, node: str = "edge1", home: str = "edge1") -> None:
        """Train/Waiting to Eval/Waiting."""
        self.report(controller_says("Train", "Ready", train_input(round_)), home)
        self.report(worker_says("train", "running"), node)
        self.report(worker_says("train", "completed", [model("train", round_)]), node)

    def evaluate(self, round_: int = 1) -> None:
        """Eval/Waiting to Deploy/Waiting."""
        self.report(controller_says("Eval", "Ready", eval_input(round_)))
        self.report(worker_says("eval", "running"))
        self.report(worker_says("eval", "completed", [model("eval", round_)]))

    def deploy(self, round_: int = 1) -> None:
        """Say that the model is deployed."""
        self.report(controller_says("Deploy", "Ready", {"models": [model("eval", round_)]}))

    @property
    def moves(self) -> list[str]:
        """The kept conditions as `Stage/Type`."""
        return [f"{c['stage']}/{c['type']}" for c in self.job.conditions]

    def data(self, index: int = -1) -> Any:
        """The parsed data of a condition."""
        return loads_object(str(self.job.conditions[index]["data"]))

    def _facts(self) -> Facts:
        return Facts(self.clock, f"{next(self._tokens):032x}")

    def _keep(self, decision: tuple[list[Event], GmJob]) -> list[Event]:
        events, self.job = decision
        self.events += events
        assert fold_job(STREAM, self.events) == self.job, "a replay gives another state"
        return events
