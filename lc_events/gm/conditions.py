"""A job's conditions as Sedna's global manager writes them, and how many of them are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lc_events.domain.conditions import models_of
from lc_events.domain.stamp import stamp
from lc_events.messages.json import Json, JsonObject, dumps

__all__ = ["KEPT", "NEXT_STAGE", "bounded_models", "condition", "kept", "models", "strictly_after"]

KEPT = 40
"""Newest conditions of a job that are sent; besides them go the newest trained and the newest evaluated models."""

NEXT_STAGE = {"Train": "Eval", "Eval": "Deploy", "Deploy": "Train"}

_MAX_MODELS_BYTES = 65_536
_SMALLEST_STEP = timedelta(microseconds=1)


def condition(
    stage: str, type_: str, at: str, data: JsonObject | None = None, message: str | None = None
) -> JsonObject:
    """One entry of the list; `data` becomes a JSON string, as in Sedna's `LLJobCondition`."""
    written: dict[str, Json] = {
        "type": type_,
        "status": "True",
        "stage": stage,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }
    if message is not None:
        written["message"] = message
    if data is not None:
        written["data"] = dumps(data).decode()
    return written


def strictly_after(last: str | None, now: str) -> str:
    """`now`, or a microsecond after `last` if the clock stands still or went back: an LC tells conditions by time."""
    if last is None or now > last:
        return now
    return stamp(datetime.fromisoformat(last) + _SMALLEST_STEP)


def kept(conditions: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """The newest 40, and before them the newest output of Train and Eval: without it an LC would find no model.

    Keeping what was kept before, and one more, keeps the same as if nothing had ever been dropped.
    """
    recent = list(conditions[-KEPT:])
    older = [
        found
        for stage in ("Train", "Eval")
        if (found := _newest_output(conditions, stage)) is not None and found not in recent
    ]
    older.sort(key=lambda entry: str(entry["lastTransitionTime"]))
    return (*older, *recent)


def models(conditions: Sequence[JsonObject], stage: str) -> Sequence[JsonObject]:
    """The models of a stage's newest output; none if there is none."""
    newest = _newest_output(conditions, stage)
    return (models_of(newest) or ()) if newest is not None else ()


def bounded_models(results: Json) -> list[JsonObject] | None:
    """A worker's models as a condition keeps them: those that name a URL, `classes` written even when null.

    Metrics are left out where they would make the resource too large to send; None if that does not help.
    """
    given = results if isinstance(results, list) else []
    named: list[JsonObject] = [
        {**model, "classes": model.get("classes")}
        for model in given
        if isinstance(model, dict) and isinstance(model.get("url"), str)
    ]
    if len(dumps(named)) > _MAX_MODELS_BYTES:
        named = [{name: value for name, value in model.items() if name != "metrics"} for model in named]
    return named if len(dumps(named)) <= _MAX_MODELS_BYTES else None


def _newest_output(conditions: Sequence[JsonObject], stage: str) -> JsonObject | None:
    return next((c for c in reversed(conditions) if c.get("stage") == stage and models_of(c) is not None), None)
