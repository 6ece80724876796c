"""Sedna's resources and messages as a global manager writes them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson

from lc_events.messages.gm import DownMessage, read_down
from lc_events.messages.json import JsonObject

JOB = "lifelonglearningjob"
DATASET = "dataset"
MORE_THAN_3 = {"condition": {"operator": ">", "threshold": 3, "metric": "num_of_samples"}}


def condition(stage: str, type_: str, at: str | None = None, data: JsonObject | str | None = None) -> dict[str, Any]:
    """One entry of GM's list; `data` as GM writes it, a JSON string."""
    entry: dict[str, Any] = {"type": type_, "status": "True", "stage": stage, "lastTransitionTime": at}
    if data is not None:
        entry["data"] = data if isinstance(data, str) else orjson.dumps(data).decode()
    return entry


def model(url: str, **more: object) -> dict[str, Any]:
    return {"format": "pkl", "url": url, "metrics": {"acc": [0.5]}, "classes": None, **more}


def output(*urls: str) -> JsonObject:
    """The data of a Completed condition that names models."""
    return {"output": {"models": [model(url) for url in urls]}}


def job_resource(
    *conditions: JsonObject,
    name: str = "job1",
    trigger: JsonObject | None = MORE_THAN_3,
    train_prob: float = 0.8,
    dataset: str = "ds",
    output_dir: str = "/output/job1",
    **metadata: object,
) -> dict[str, Any]:
    """A LifelongLearningJob; `metadata` are further fields of it, such as `uid`."""
    template: JsonObject = {"metadata": {}, "spec": {"containers": []}}
    train_spec = {"template": template} if trigger is None else {"template": template, "trigger": trigger}
    resource = {
        "kind": "LifelongLearningJob",
        "apiVersion": "sedna.io/v1alpha1",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {
            "dataset": {"name": dataset, "trainProb": train_prob},
            "trainSpec": train_spec,
            "evalSpec": {"template": template},
            "deploySpec": {"template": template},
            "outputDir": output_dir,
        },
        "status": {"conditions": list(conditions)},
    }
    return deepcopy(resource)  # whoever changes it changes nothing that others use


def dataset_resource(*, name: str = "ds", url: str = "/data/ds.txt", format_: str = "txt") -> dict[str, Any]:
    return {
        "kind": "Dataset",
        "apiVersion": "sedna.io/v1alpha1",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"url": url, "format": format_, "nodeName": "edge1"},
        "status": {"numberOfSamples": 0},
    }


def down_payload(
    content: object, *, kind: str = JOB, name: str = "job1", operation: str = "insert", message_id: str | None = None
) -> bytes:
    header = {"namespace": "default", "resourceKind": kind, "resourceName": name, "operation": operation}
    message: dict[str, object] = {"header": header, "content": content}
    if message_id is not None:
        message["id"] = message_id
    return orjson.dumps(message)


def down(
    content: object, *, kind: str = JOB, name: str = "job1", operation: str = "insert", message_id: str | None = None
) -> DownMessage:
    """A message that came through the door."""
    payload = down_payload(content, kind=kind, name=name, operation=operation, message_id=message_id)
    return read_down(payload, kind=kind, namespace="default", name=name)
