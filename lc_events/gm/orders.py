"""Work orders: the program of a stage with the environment that Sedna gives its workers, and no secret in it."""

from __future__ import annotations

from collections.abc import Mapping

from lc_events.gm.conditions import models
from lc_events.gm.job import GmJob
from lc_events.gm.template import Container
from lc_events.messages.json import Json, JsonObject
from lc_events.messages.secrets import MASK, is_secret_name
from lc_events.messages.worker import WorkOrder

__all__ = ["work_order"]

DEPLOYED_MODEL = "deploy/index.pkl"
"""Where an LC puts the deployed model, below outputDir."""

_MODEL_SEPARATOR = ";"


def work_order(job: GmJob, container: Container, stage: str, given: JsonObject) -> JsonObject:
    """The order of a stage, all but its id; `given` is the `input` with which the LC reported Ready.

    The variables are those of Sedna's createPod and createInferPod
    (pkg/globalmanager/controllers/lifelonglearning/lifelonglearningjob.go), without LC_SERVER and KB_SERVER.
    """
    own = _of_stage(job, stage, given)
    from_elsewhere = [v.name for v in container.env if v.value == MASK or v.value_from or is_secret_name(v.name)]
    plain = {v.name: v.value or "" for v in container.env if v.name not in from_elsewhere}
    order = WorkOrder.model_validate(
        {
            "id": "-",
            "namespace": job.namespace,
            "job": job.name,
            "stage": stage,
            "round": job.round,
            "command": container.command,
            "args": container.args,
            "env": {**plain, **{name: value for name, value in own.items() if value}},
            "secret_env": from_elsewhere,
            "output_url": own["OUTPUT_URL"],
        }
    )
    return order.model_dump(mode="json", exclude={"id", "cancel"})


def _of_stage(job: GmJob, stage: str, given: JsonObject) -> Mapping[str, str]:
    if stage == "Deploy":
        return {"MODEL_URLS": f"{job.output_dir}/{DEPLOYED_MODEL}", "OUTPUT_URL": job.output_dir}
    # Sedna gives workers of a dataset in S3 the index of its samples' objects in place of the dataset's own file.
    original = _text(given.get("dataIndexURL")) or job.dataset_url or ""
    shared = {"OUTPUT_URL": _text(given.get("outputDir")), "ORIGINAL_DATASET_URL": original}
    if stage == "Eval":
        named = given.get("models")
        urls = (
            [_text(model.get("url")) for model in named if isinstance(model, dict)] if isinstance(named, list) else []
        )
        return {**shared, "TEST_DATASET_URL": _text(given.get("dataURL")), "MODEL_URLS": _MODEL_SEPARATOR.join(urls)}
    trained = models(job.conditions, "Train")
    return {
        **shared,
        "TRAIN_DATASET_URL": _text(given.get("dataURL")),
        "HAS_COMPLETED_INITIAL_TRAINING": "true" if job.trained else "false",
        "CLOUD_KB_INDEX": str(trained[0]["url"]) if trained else "",
    }


def _urls(named: Json) -> list[str]:
    return [_text(model.get("url")) for model in named if isinstance(model, dict)] if isinstance(named, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
