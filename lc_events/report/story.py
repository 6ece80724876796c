"""What a report shows, taken from a job's events in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lc_events.application.audit.narration import narrate
from lc_events.application.audit.provenance import records_of
from lc_events.application.recorder import StoredRow
from lc_events.domain import events as e
from lc_events.domain.arrivals import Records, arrivals
from lc_events.domain.events import Event
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve
from lc_events.domain.views import verdict_detail
from lc_events.messages.json import Json, JsonObject

__all__ = ["Mark", "Point", "Round", "Stay", "Story", "read_story"]

Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class Stay:
    """A job stood at a stage and type from `start` to `end`."""

    stage: str
    type: str
    start: datetime
    end: datetime
    round: int


@dataclass(frozen=True, slots=True)
class Point:
    """Pending train samples after an event, with the trigger's threshold then (None without a condition)."""

    time: datetime
    pending: int
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A verdict in words, at the pending count that it saw."""

    time: datetime
    stage: str
    fired: bool
    pending: int
    words: str


@dataclass(slots=True)
class Round:
    """What became of a round; `failed` says why it will not come to its end, unless it is tried anew."""

    number: int
    generation: int
    version: int
    time: datetime
    samples: int
    records: Sequence[Records] = ()
    train: JsonObject | None = None
    eval: JsonObject | None = None
    model: JsonObject | None = None
    metrics: dict[str, Numbers] = field(default_factory=dict)
    """Worker kind (`train`, `eval`) to metric to value."""
    failed: str | None = None


@dataclass(slots=True)
class Story:
    """All of it; `lines` are the events that are not ticks, newest last."""

    state: JobState
    stays: list[Stay] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    lines: list[tuple[int, datetime, str, str]] = field(default_factory=list)
    first: datetime | None = None
    last: datetime | None = None


def read_story(stream: str, rows: Iterable[StoredRow], decode: Callable[[StoredRow], Event]) -> Story:
    """Fold the rows of a job's stream, in version order, and note what a reader wants to see."""
    story = Story(JobState(stream))
    reader = _Reader(story)
    for row in rows:
        reader.take(decode(row))
    reader.finish()
    return story


class _Reader:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._stood: tuple[str, str, int] | None = None
        self._since: datetime | None = None
        self._arriving: list[Event] = []
        self._triggered: list[tuple[Round, e.TrainingTriggered]] = []

    def take(self, event: Event) -> None:
        story = self._story
        before, after = story.state, evolve(story.state, event)
        story.state = after
        time = datetime.fromisoformat(event.time)
        story.first = story.first or time
        story.last = max(story.last or time, time)
        self._note_stay(after, time)
        self._note_samples(before, after, time)
        self._note_verdict(before, after, event)
        self._note_round(event, after, time)
        if not isinstance(event, (e.Ticked, e.ReportsConfirmed)):
            story.lines.append((event.originator_version, time, type(event).__name__, narrate(event, after)))

    def finish(self) -> None:
        arrived = arrivals(self._arriving)
        for began, triggered in self._triggered:
            began.records = records_of(triggered, arrived)
        if self._stood is not None and self._since is not None and self._story.last is not None:
            stage, type_, round_ = self._stood
            self._story.stays.append(Stay(stage, type_, self._since, self._story.last, round_))

    def _note_stay(self, state: JobState, time: datetime) -> None:
        stands = None if state.deleted or state.stage is None else (state.stage, str(state.type), state.round)
        if stands == self._stood:
            return
        if self._stood is not None and self._since is not None:
            stage, type_, round_ = self._stood
            self._story.stays.append(Stay(stage, type_, self._since, max(time, self._since), round_))
        self._stood, self._since = stands, time

    def _note_samples(self, before: JobState, after: JobState, time: datetime) -> None:
        threshold = after.trigger.threshold if after.trigger.operator is not None else None
        changed = (before.train_pending_count, before.trigger) != (after.train_pending_count, after.trigger)
        if changed or not self._story.points:
            self._story.points.append(Point(time, after.train_pending_count, threshold))

    def _note_verdict(self, before: JobState, after: JobState, event: Event) -> None:
        verdict = after.verdict
        if verdict is None or verdict == before.verdict:
            return
        words = f"{verdict.stage}: {verdict.reason}; {verdict_detail(verdict)}"
        fired = verdict.reason == "fired"
        time = datetime.fromisoformat(event.time)
        self._story.marks.append(Mark(time, verdict.stage, fired, verdict.samples, words))

    def _note_round(self, event: Event, state: JobState, time: datetime) -> None:
        if isinstance(event, (e.GlobalManagerMessageReceived, e.SamplesArrived)):
            self._arriving.append(event)
        elif isinstance(event, e.TrainingTriggered):
            began = Round(event.round, state.generation, event.originator_version, time, event.samples)
            self._story.rounds.append(began)
            self._triggered.append((began, event))
        elif (round_ := self._present(state)) is not None:
            _note_progress(round_, event)

    def _present(self, state: JobState) -> Round | None:
        """The round that the job is at, if it was decided here: an adopted one was another's decision."""
        newest = self._story.rounds[-1:]
        return next((r for r in newest if (r.generation, r.number) == (state.generation, state.round)), None)


def _note_progress(round_: Round, event: Event) -> None:
    """What is written or reported shows that the round went on, whatever failed before."""
    match event:
        case e.TrainDataWritten() if event.files:
            round_.train, round_.failed = event.files[0], None
        case e.EvalDataWritten() if event.files:
            round_.eval, round_.failed = event.files[0], None
        case e.ModelDeployed():
            round_.model = {"url": event.url, "sha256": event.sha256, "size": event.size}
            round_.failed = None
        case e.TriggerFailed() if event.final:
            round_.failed = event.error
        case e.WorkerResultReceived() if event.status.lower() == "completed":
            round_.metrics.setdefault(event.kind, {}).update(_numbers(event.results))
            round_.failed = None
        case e.WorkerResultReceived() if event.status.lower() == "failed":
            round_.failed = f"{event.kind} worker {event.worker} failed"


def _numbers(results: Sequence[Json] | None) -> Numbers:
    """The metrics of the first result that are numbers, or lists of one number."""
    first = results[0] if results else None
    metrics = first.get("metrics") if isinstance(first, dict) else None
    found: Numbers = {}
    for name, value in metrics.items() if isinstance(metrics, dict) else ():
        number = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            found[name] = float(number)
    return found
