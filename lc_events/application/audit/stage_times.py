"""How long each stage of each round took, from its decision to the next waiting condition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from statistics import median

from lc_events.domain import events as e
from lc_events.domain.events import Event

__all__ = ["STAGES", "StageTimes"]

STAGES: dict[type[Event], str] = {
    e.TrainingTriggered: "Train",
    e.EvaluationTriggered: "Eval",
    e.DeployTriggered: "Deploy",
}
"""The stage that each trigger begins."""


class StageTimes:
    """Durations: those that are `told`, else the recorded ones, else the median of the stage."""

    def __init__(self, events: Iterable[Event], told: Mapping[str, timedelta]) -> None:
        self._told = told
        self._of_round: dict[tuple[int, str, int], float] = {}
        self._of_stage: dict[str, list[float]] = defaultdict(list)
        generation, begun = 0, None
        for event in events:
            if isinstance(event, (e.TrainingTriggered, e.EvaluationTriggered, e.DeployTriggered)):
                begun = (generation, STAGES[type(event)], event.round), datetime.fromisoformat(event.time)
            elif isinstance(event, e.JobDeleted):
                begun = None
            elif isinstance(event, e.GlobalManagerMessageReceived):
                generation = event.generation or generation
                if begun is not None and event.conditions and event.conditions[-1].get("type") == "Waiting":
                    self._note(begun[0], datetime.fromisoformat(event.time) - begun[1])
                    begun = None

    def _note(self, round_: tuple[int, str, int], duration: timedelta) -> None:
        seconds = max(0.0, duration.total_seconds())
        self._of_round[round_] = seconds
        self._of_stage[round_[1]].append(seconds)

    def of(self, generation: int, stage: str, round_: int) -> timedelta | None:
        """How long a stage takes; None if it was never recorded to its end."""
        if stage in self._told:
            return self._told[stage]
        seconds = self._of_round.get((generation, stage, round_))
        if seconds is None and self._of_stage[stage]:
            seconds = median(self._of_stage[stage])
        return None if seconds is None else timedelta(seconds=seconds)
