"""Another training rule, put in the place of the recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lc_events.errors import UsageError
from lc_events.messages.gm import explain
from lc_events.messages.json import JsonObject
from lc_events.messages.resources import JobSpec

__all__ = ["NO_WINDOW", "OtherRule"]

NO_WINDOW = "none"


@dataclass(frozen=True)
class OtherRule:
    """What is to be different; None leaves it as it was. `window` is `HH:MM-HH:MM`, or `none` for no window."""

    threshold: float | None = None
    operator: str | None = None
    window: str | None = None
    train_prob: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be different."""
        return self == OtherRule()

    def applied(self, spec: JsonObject) -> JsonObject:
        """A job's spec under this rule; UsageError if no job can have that spec."""
        changed: dict[str, Any] = {**spec}
        train_spec = {**_object(spec.get("trainSpec"))}
        train_spec["trigger"] = self._trigger(_object(train_spec.get("trigger")))
        changed["trainSpec"] = train_spec
        if self.train_prob is not None:
            changed["dataset"] = {**_object(spec.get("dataset")), "trainProb": self.train_prob}
        try:
            JobSpec.model_validate(changed)
        except ValidationError as error:
            raise UsageError(f"no job can have this rule: {explain(error)}") from None
        return changed

    def _trigger(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        trigger = {**recorded}
        if self.threshold is not None or self.operator is not None:
            condition = _object(recorded.get("condition"))
            if not condition.get("operator"):
                if self.threshold is None:
                    raise UsageError("the job has no condition to compare by another operator: give --threshold too")
                condition = {"operator": ">=", "metric": "num_of_samples"}
            told = {"threshold": self.threshold, "operator": self.operator}
            trigger["condition"] = {**condition, **{name: value for name, value in told.items() if value is not None}}
        if self.window == NO_WINDOW:
            trigger.pop("timer", None)
        elif self.window is not None:
            start, dash, end = self.window.partition("-")
            if not dash:
                raise UsageError(f"{self.window!r} is not a window: give HH:MM-HH:MM, or none")
            trigger["timer"] = {"start": start.strip(), "end": end.strip()}
        return trigger


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
