"""Folded states as JSON and back: what a snapshot holds. A shape that changed makes another schema by itself."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from lc_events.domain import events as e
from lc_events.domain.backlog import Backlog, Unconfirmed
from lc_events.domain.dataset import DatasetState, Problem
from lc_events.domain.job import (
    Failure,
    Intent,
    JobState,
    Place,
    Report,
    SampleRange,
    Source,
    Verdict,
)
from lc_events.domain.trigger import Trigger
from lc_events.messages.names import JOB_KIND, kind_of

__all__ = ["FOLD", "SCHEMA", "State", "read_state", "write_state"]

FOLD = 1
"""Version of the fold: to be raised when it makes another state of the same events (tests/histories shows it)."""

State = JobState | DatasetState

_SHAPES = (
    JobState,
    DatasetState,
    Trigger,
    *(Failure, Intent, Place, Problem, Report, SampleRange, Source, Unconfirmed, Verdict),
    *(e.TrainingTriggered, e.EvaluationTriggered, e.DeployTriggered),
)
_INTENDED: dict[str, Any] = {
    "Train": e.TrainingTriggered,
    "Eval": e.EvaluationTriggered,
    "Deploy": e.DeployTriggered,
}


def _schema() -> str:
    shapes = repr([(cls.__name__, sorted(cls.__annotations__.items())) for cls in _SHAPES])
    return f"{FOLD}-{hashlib.sha256(shapes.encode()).hexdigest()[:12]}"


SCHEMA = _schema()
"""Which code can load a snapshot, and would have folded the same."""


def write_state(state: State) -> bytes:
    """A state as JSON: named tuples as lists, all else by the names of its fields."""
    return orjson.dumps(state, default=tuple)


def read_state(stream: str, stored: bytes) -> State:
    """The state that `write_state` wrote; ValueError, TypeError or LookupError if it is none of this schema."""
    fields: dict[str, Any] = orjson.loads(stored)
    if kind_of(stream) == JOB_KIND:
        return JobState(**_job(fields))
    return DatasetState(**{**fields, "problem": _tuple(Problem, fields["problem"])})


def _job(fields: dict[str, Any]) -> dict[str, Any]:
    verdict, intent = fields["verdict"], fields["intent"]
    return {
        **fields,
        "trigger": _trigger(fields["trigger"]),
        "model_places": tuple(fields["model_places"]),
        "waiting": None if fields["waiting"] is None else tuple(fields["waiting"]),
        "intent": None if intent is None else _intent(*intent),
        "failure": _tuple(Failure, fields["failure"]),
        "reports": tuple(Report(tuple(key), *rest) for key, *rest in fields["reports"]),
        "unconfirmed": Backlog(_tuples(Unconfirmed, fields["unconfirmed"])),
        "verdict": None if verdict is None else Verdict(*verdict)._replace(trigger=_trigger(verdict[4])),
        "sources": _tuples(Source, fields["sources"]),
        "place": _tuple(Place, fields["place"]),
        "train_pending": _tuples(SampleRange, fields["train_pending"]),
        "eval_pending": _tuples(SampleRange, fields["eval_pending"]),
        "eval_rounds": tuple((round_, _tuples(SampleRange, ranges)) for round_, ranges in fields["eval_rounds"]),
    }


def _intent(stage: str, round_: int, version: int, key: list[Any], event: dict[str, Any]) -> Intent:
    return Intent(stage, round_, version, tuple(key), _INTENDED[stage](**event))


def _trigger(fields: dict[str, Any]) -> Trigger:
    window = fields["window"]
    return Trigger(**{**fields, "window": None if window is None else (window[0], window[1])})


def _tuple(cls: Any, values: list[Any] | None) -> Any:
    return None if values is None else cls(*values)


def _tuples(cls: Any, values: list[list[Any]]) -> tuple[Any, ...]:
    return tuple(cls(*each) for each in values)
