"""A job under another rule: it follows the recorded facts until it decides otherwise, then goes on by itself."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from lc_events.application.audit import commands
from lc_events.application.audit.other_rule import OtherRule
from lc_events.application.audit.stage_times import STAGES, StageTimes
from lc_events.application.audit.windows import next_opening
from lc_events.domain import decisions as d
from lc_events.domain import events as e
from lc_events.domain import outcomes
from lc_events.domain.events import Event
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve
from lc_events.domain.stamp import stamp
from lc_events.messages.gm import DownMessage
from lc_events.messages.json import Json, JsonObject

__all__ = ["Group", "OtherCourse", "Round"]

_TRIGGERS = (e.TrainingTriggered, e.EvaluationTriggered, e.DeployTriggered)
_NEXT = {"Train": "Eval", "Eval": "Deploy", "Deploy": "Train"}
_KEPT_CONDITIONS = 40
"""As our own GM keeps them."""

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)

_Decision = tuple[list[Event], JobState]


class Round(NamedTuple):
    """A training trigger: when, on how many samples.

    `version` is that of the recorded trigger. For a round that was not recorded it is that of the fact which would have
    set it off; None if no recorded fact would have.
    """

    round: int
    time: str
    version: int | None
    samples: int
    generation: int

    def to_json(self) -> dict[str, Json]:
        """By the names of its fields."""
        return self._asdict()


class Group(NamedTuple):
    """What was saved together: the fact or message that came, and all events that it led to, itself included."""

    stimulus: Event
    events: Sequence[Event]

    @property
    def begins_life(self) -> bool:
        """Whether a life of the name begins."""
        return isinstance(self.stimulus, e.GlobalManagerMessageReceived) and self.stimulus.generation is not None


class _Due(NamedTuple):
    """What comes by itself: the end of a stage, or (with no stage) the opening of the window."""

    time: datetime
    stage: str


class OtherCourse:
    """`parted_at` is the version at which the first decision differs; each new life begins as it was recorded."""

    def __init__(self, stream: str, rule: OtherRule, times: StageTimes) -> None:
        self.rounds: list[Round] = []
        self.notes: list[str] = []
        self.parted_at: int | None = None
        self._state = JobState(stream)
        self._rule = rule
        self._times = times
        self._conditions: list[JsonObject] = []
        self._recorded_conditions: list[JsonObject] = []
        self._alone = False
        self._due: list[_Due] = []
        self._now = datetime.min.replace(tzinfo=UTC)
        self._moves = 0

    def live_through(self, group: Group) -> None:
        """Take the next thing that happened."""
        self._now = datetime.fromisoformat(group.stimulus.time)
        if isinstance(group.stimulus, e.GlobalManagerMessageReceived):
            known = [] if group.begins_life else self._recorded_conditions
            self._recorded_conditions = commands.conditions_after(known, group.stimulus)
        if group.begins_life:
            self._alone = False
            self._due.clear()
        if self._alone:
            self.go_on(self._now)
            self._take_what_nobody_decided(group.stimulus)
        else:
            self._follow(group)

    def go_on(self, until: datetime) -> None:
        """Let happen what is due until then: ends of stages, openings of the window."""
        while self._alone and self._due and self._due[0].time <= until:
            due = heapq.heappop(self._due)
            facts = d.Facts(stamp(due.time), self._state.zone, model_places=self._state.model_places)
            if due.stage:
                self._take(d.receive_gm_message(self._state, self._told(due.stage), facts), due.time)
            else:
                self._take(d.tick(self._state, facts, cause="window"), due.time)

    def _follow(self, group: Group) -> None:
        decision = self._decide_again(group.stimulus)
        if decision is None:
            self._state = evolve(self._state, group.stimulus)
            return
        parted = _decided(decision[0]) != _decided(group.events)
        if parted:
            self._alone = True
            self._conditions = self._recorded_conditions[-_KEPT_CONDITIONS:]
            self.parted_at = self.parted_at or group.events[0].originator_version
        fired = next((event for event in group.events if isinstance(event, e.TrainingTriggered)), group.stimulus)
        self._take(decision, self._now, fired.originator_version)

    def _decide_again(self, stimulus: Event) -> _Decision | None:
        """None for what needs no decision."""
        state = self._state
        match stimulus:
            case e.GlobalManagerMessageReceived():
                spec = None if stimulus.spec is None else self._rule.applied(stimulus.spec)
                message = commands.job_message(stimulus, state, self._recorded_conditions, spec)
                return d.receive_gm_message(state, message, commands.facts(stimulus, state))
            case e.Ticked():
                facts = commands.facts(stimulus, state)
                return d.tick(state, facts, cause=stimulus.cause, as_of=stimulus.as_of, count=stimulus.count)
            case e.SamplesArrived():
                return d.add_samples(state, commands.samples(stimulus, state), commands.facts(stimulus, state))
        return None

    def _take_what_nobody_decided(self, stimulus: Event) -> None:
        state, now, version = self._state, self._now, stimulus.originator_version
        match stimulus:
            case e.SamplesArrived():
                self._take(self._decide_again(stimulus) or ([], state), now, version)
            case e.Ticked(cause="external"):
                self._take(self._decide_again(stimulus) or ([], state), now, version)
            case e.GlobalManagerMessageReceived() if stimulus.operation == "delete" or stimulus.spec is not None:
                spec = None if stimulus.spec is None else self._rule.applied(stimulus.spec)
                message = commands.job_message(stimulus, state, self._conditions, spec)
                self._take(d.receive_gm_message(state, message, commands.facts(stimulus, state)), now, version)

    def _take(self, decision: _Decision, now: datetime, version: int | None = None) -> None:
        events, self._state = decision
        for event in events:
            if isinstance(event, e.TrainingTriggered):
                self.rounds.append(Round(event.round, stamp(now), version, event.samples, self._state.generation))
        if self._alone:
            for event in events:
                if isinstance(event, _TRIGGERS):
                    self._carry_out(event, now)
            self._await_opening(now)

    def _carry_out(self, event: e.TrainingTriggered | e.EvaluationTriggered | e.DeployTriggered, now: datetime) -> None:
        """What was decided is done at once; how long GM takes to go on is known from what was recorded."""
        stage, round_ = STAGES[type(event)], event.round
        if isinstance(event, e.DeployTriggered):
            _, self._state = outcomes.record_model(
                self._state, round_, url=str(event.target), sha256="", size=0, now=stamp(now)
            )
        else:
            _, self._state = outcomes.record_files(self._state, stage, round_, [], stamp(now))
        duration = self._times.of(self._state.generation, stage, round_)
        if duration is None:
            end = f"no {stage} was recorded to its end"
            self.notes.append(f"how it would have gone on after {stage} of round {round_} is unknown: {end}")
        elif duration < _END_OF_TIME - now:
            heapq.heappush(self._due, _Due(now + duration, stage))

    def _await_opening(self, now: datetime) -> None:
        self._due = [due for due in self._due if due.stage]
        heapq.heapify(self._due)
        state, window = self._state, self._state.trigger.window
        if window is None or not state.is_waiting or state.verdict is None or state.verdict.reason != "window":
            return
        opening = next_opening(window, state.zone, now)
        if opening is not None:
            heapq.heappush(self._due, _Due(opening, ""))

    def _told(self, stage: str) -> DownMessage:
        """GM's message at the end of a stage."""
        self._moves += 1
        at = f"what-if-{self._moves}"
        done: dict[str, Json] = {"type": "Completed", "stage": stage, "lastTransitionTime": at}
        if stage != "Deploy":
            url = f"{self._state.output_dir}/what-if/{self._state.round}/model"
            done["data"] = orjson.dumps({"output": {"models": [{"url": url}]}}).decode()
        waiting: JsonObject = {"type": "Waiting", "stage": _NEXT[stage], "lastTransitionTime": at}
        self._conditions = [*self._conditions, done, waiting][-_KEPT_CONDITIONS:]
        return commands.told(self._state, self._conditions)


def _decided(events: Sequence[Event]) -> list[tuple[str, int, int]]:
    """What a group decided that can make two courses part."""
    return [
        (STAGES[type(event)], event.round, 0 if isinstance(event, e.DeployTriggered) else event.samples)
        for event in events
        if isinstance(event, _TRIGGERS)
    ]
