"""GM's list of conditions: what is new in it, what it proves, which models it names, how a waiting one is known."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from lc_events.errors import RefusedError
from lc_events.messages.json import UINT64_MAX, Json, JsonObject, dumps, loads_object

__all__ = [
    "READY",
    "digest",
    "is_proven",
    "models_of",
    "new_conditions",
    "rank_of_result",
    "round_of",
    "stage_of",
    "waiting_key",
]

READY = 1
_SAMPLE_FILE = re.compile(r".+/([1-9][0-9]{0,8})/data\.(?:txt|csv)")
_RANKS = {"Ready": READY, "Starting": 2, "Running": 3, "Completed": 4, "Failed": 4, "Waiting": 5}
_STAGES = {"train": "Train", "eval": "Eval", "deploy": "Deploy", "inference": "Deploy"}
_RESULT_RANKS = {"completed": 4, "failed": 4}


def digest(value: Json) -> str:
    """A short hash of a JSON value, to see whether it changed."""
    return hashlib.sha256(dumps(value)).hexdigest()[:16]


def new_conditions(
    conditions: Sequence[JsonObject], *, count: int, known: str, last: JsonObject | None
) -> Sequence[JsonObject]:
    """The entries that were not in GM's list before, of which `count`, the `digest` and the `last` are remembered.

    A list that does not begin with the one before was trimmed (our GM keeps 40) or written anew: then what follows
    the entry that was the last is new, or all of it if that is gone or has not moved, so that one before it changed.
    """
    if len(conditions) >= count and digest(list(conditions[:count])) == known:
        return conditions[count:]
    for index in range(len(conditions) - 1, -1, -1):
        if conditions[index] == last:
            return conditions if index == count - 1 else conditions[index + 1 :]
    return conditions


def waiting_key(uid: str | None, count: int, last: JsonObject | None) -> tuple[Json, ...] | None:
    """How the waiting condition at the end of a list is known (CONTRACT section 3); None if the last is no such.

    A stage that Sedna does not have waits for nothing that we could do.
    """
    if last is None or last.get("type") != "Waiting" or last.get("stage") not in ("Train", "Eval", "Deploy"):
        return None
    return (uid, count, last.get("stage"), last.get("type"), last.get("lastTransitionTime"))


def models_of(condition: JsonObject) -> Sequence[JsonObject] | None:
    """The models that a Completed condition puts out; None if its `data` does not parse or holds none.

    A real GM also appends Completed without data. `classes` is written even when null, as Go does.
    """
    if condition.get("type") != "Completed":
        return None
    models = _data(condition, "output").get("models")
    if not isinstance(models, list):
        return None
    named = [model for model in models if isinstance(model, dict) and _is_named(model.get("url"))]
    return [{**model, "classes": model.get("classes")} for model in named] or None


def _is_named(url: Json) -> bool:
    return isinstance(url, str) and url != ""


def round_of(condition: JsonObject) -> tuple[int, str] | None:
    """Round and data URL of a Train/Ready condition: `OUTPUT/data/train/ROUND/data.txt`; None if it is none."""
    if (condition.get("stage"), condition.get("type")) != ("Train", "Ready"):
        return None
    url = _data(condition, "input").get("dataURL")
    if not isinstance(url, str):
        return None
    match = _SAMPLE_FILE.fullmatch(url)
    return (int(match[1]), url) if match else None


def _data(condition: JsonObject, part: str) -> JsonObject:
    data = condition.get("data")
    if not isinstance(data, str):
        return {}
    try:
        value = loads_object(data, max_integer=UINT64_MAX).get(part)
    except RefusedError:
        return {}
    return value if isinstance(value, dict) else {}


def stage_of(kind: str) -> str:
    """The stage at which a worker of this kind works, or that an upstream `phase` names; empty for any other word."""
    return _STAGES.get(kind.lower(), "")


def rank_of_result(kind: str, status: str) -> tuple[str, int]:
    """The stage of a worker's report and how far a condition of it must be to prove that GM has the report."""
    return stage_of(kind), _RESULT_RANKS.get(status.lower(), 3)


def is_proven(stage: str, rank: int, conditions: Sequence[JsonObject]) -> bool:
    """Whether new conditions show that GM has had a report of `stage`: one of that stage went as far, or further."""
    return any(c.get("stage") == stage and _RANKS.get(str(c.get("type")), 0) >= rank for c in conditions)
