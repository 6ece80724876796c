"""The training trigger: window AND condition, an absent part being true (Sedna pkg/localcontroller/trigger)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lc_events.domain.window import Minutes, is_open, show_window
from lc_events.messages.json import JsonObject
from lc_events.messages.resources import Trigger as TriggerResource

__all__ = ["NUM_OF_SAMPLES", "Trigger", "compare", "show_threshold"]

NUM_OF_SAMPLES = "num_of_samples"
_TOLERANCE = 1e-6


def compare(value: float, operator: str, threshold: float) -> bool:
    """Sedna's comparison: two numbers closer than 1e-6 are equal."""
    equal = abs(value - threshold) < _TOLERANCE
    match operator:
        case "gt" | ">":
            return not equal and value > threshold
        case "ge" | ">=":
            return equal or value >= threshold
        case "eq" | "=" | "==":
            return equal
        case "ne" | "!=":
            return not equal
        case "le" | "<=":
            return equal or value <= threshold
        case "lt" | "<":
            return not equal and value < threshold
    return False


def show_threshold(value: float) -> str:
    """As somebody would write it: `3`, `0.5`, `1000000`."""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e16 else repr(value)


@dataclass(frozen=True, slots=True)
class Trigger:
    """When pending samples become a round; without an operator there is no condition."""

    operator: str | None = None
    threshold: float = 0.0
    metric: str = NUM_OF_SAMPLES
    window: Minutes | None = None
    period: int | None = None
    """Seconds between ticks, if the job's spec says."""

    @classmethod
    def read(cls, spec: JsonObject) -> Trigger:
        """The trigger of a job's spec, which was checked at the door."""
        train_spec = spec.get("trainSpec") or {}
        raw = train_spec.get("trigger") if isinstance(train_spec, dict) else None
        if not raw:
            return cls()
        resource = TriggerResource.model_validate(raw)
        condition, timer = resource.condition, resource.timer
        window = None if timer is None or timer.is_absent else timer.minutes
        period = resource.check_period_seconds or None
        if condition is None or condition.is_absent:
            return cls(window=window, period=period)
        return cls(condition.operator, condition.threshold, condition.metric, window, period)

    def judge(self, samples: int, moment: datetime, zone: str) -> str:
        """`fired`, or why not: `no_samples`, `metric`, `samples` or `window`; no sample means no training, ever."""
        if not samples:
            return "no_samples"
        if self.operator is not None:
            if self.metric != NUM_OF_SAMPLES:
                return "metric"
            if not compare(samples, self.operator, self.threshold):
                return "samples"
        if self.window is not None and not is_open(self.window, zone, moment):
            return "window"
        return "fired"

    def facts(self, samples: int, zone: str) -> dict[str, str | int | float | None]:
        """What a verdict rests on, besides the moment."""
        window = None if self.window is None else show_window(self.window)
        return {
            "metric": self.metric,
            "value": samples,
            "operator": self.operator,
            "threshold": None if self.operator is None else self.threshold,
            "window": window,
            "zone": zone,
        }
