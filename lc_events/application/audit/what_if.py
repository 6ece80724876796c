"""What would have been: the recorded facts, decided by the domain under another rule. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from lc_events.application.audit.other_course import Group, OtherCourse, Round
from lc_events.application.audit.other_rule import OtherRule
from lc_events.application.audit.stage_times import StageTimes
from lc_events.domain import events as e
from lc_events.domain.events import Event
from lc_events.messages.json import Json, JsonObject

__all__ = ["Outcome", "what_if"]

_LATER = (
    "from version {version} on, what workers would have reported and when GM would have gone on is unknown: "
    "each stage is taken to last as long as it did in the same round, else as it usually did"
)


class Outcome(NamedTuple):
    """Rounds as they were and as they would have been; `parted_at` is the version at which they part."""

    recorded: Sequence[Round]
    what_if: Sequence[Round]
    parted_at: int | None
    notes: Sequence[str]

    def to_json(self) -> JsonObject:
        """As CONTRACT section 8 has it; `notes`, and the `generation` of each round, are added."""
        recorded: list[Json] = [round_.to_json() for round_ in self.recorded]
        other: list[Json] = [round_.to_json() for round_ in self.what_if]
        return {"recorded": recorded, "what_if": other, "parted_at": self.parted_at, "notes": list(self.notes)}


def what_if(
    stream: str, events: Sequence[Event], rule: OtherRule, *, told: Mapping[str, timedelta] | None = None
) -> Outcome:
    """Decide the events of one job again under another rule.

    Until the two part, every fact is as it was. From then on only what nobody decided stays: samples, ticks that
    somebody asked for, changes of the job. Stages last as they were recorded, or as `told` (stage → duration).
    UsageError for a rule that no job can have.
    """
    course = OtherCourse(stream, rule, StageTimes(events, told or {}))
    for group in _groups(events):
        course.live_through(group)
    if events:
        course.go_on(max(datetime.fromisoformat(event.time) for event in events))
    notes = [] if course.parted_at is None else [_LATER.format(version=course.parted_at)]
    return Outcome(_recorded(events), course.rounds, course.parted_at, [*notes, *course.notes])


def _recorded(events: Sequence[Event]) -> list[Round]:
    rounds, generation = [], 0
    for event in events:
        if isinstance(event, e.GlobalManagerMessageReceived):
            generation = event.generation or generation
        elif isinstance(event, e.TrainingTriggered):
            rounds.append(Round(event.round, event.time, event.originator_version, event.samples, generation))
    return rounds


def _groups(events: Sequence[Event]) -> Iterator[Group]:
    """What was saved together, in order."""
    group: list[Event] = []
    for event in events:
        if group and not _is_reaction(event, group):
            yield _group(group)
            group = []
        group.append(event)
    if group:
        yield _group(group)


def _group(events: list[Event]) -> Group:
    is_replaced = isinstance(events[0], e.JobDeleted) and len(events) > 1
    return Group(events[1] if is_replaced else events[0], events)


def _is_reaction(event: Event, group: Sequence[Event]) -> bool:
    """Whether an event came of the one before it."""
    match event:
        case e.TrainingTriggered() | e.EvaluationTriggered() | e.DeployTriggered() | e.JobAdopted():
            return True
        case e.JobDeleted():
            return event.cause != "replaced"
        case e.Ticked():
            return event.cause == "adopted"
        case e.GlobalManagerMessageReceived():
            return isinstance(group[-1], e.JobDeleted) and len(group) == 1
    return False
