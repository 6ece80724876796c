"""The state of a job as a fold of its events: `evolve(state, event) -> state`, nothing else changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, TypeVar

from lc_events.domain import events as e
from lc_events.domain.conditions import READY, is_proven, models_of, rank_of_result, waiting_key
from lc_events.domain.trigger import Trigger
from lc_events.messages.json import Json, JsonObject

__all__ = ["EVAL_WINDOW", "Intent", "JobState", "Report", "SampleRange", "Unconfirmed", "Verdict", "evolve", "fold"]

EVAL_WINDOW = 5
"""Rounds whose eval samples an eval file holds (Sedna's EvalSamplesCapacity)."""
KEPT_REPORTS = 20


class SampleRange(NamedTuple):
    """Samples `[first, last)` of the dataset's spool that share a csv header."""

    first: int
    last: int
    header: str | None = None

    @property
    def size(self) -> int:
        """How many samples these are."""
        return self.last - self.first


class Place(NamedTuple):
    """Up to where a job has taken its dataset: record `rows` at byte `offset` of file number `epoch`."""

    epoch: int
    rows: int
    offset: int


class Verdict(NamedTuple):
    """What a trigger said: `samples` were pending, `reason` is `fired` or why it did not fire."""

    time: str
    stage: str
    reason: str
    samples: int
    trigger: Trigger
    zone: str
    note: str | None


class Report(NamedTuple):
    """A waiting condition that was answered, by the event at `version`."""

    key: tuple[Json, ...]
    stage: str
    round: int
    version: int


class Unconfirmed(NamedTuple):
    """What went up and is not known to be on GM's disk; `rank` is how far a condition must be to prove it."""

    version: int
    stage: str
    rank: int
    is_result: bool
    time: str


class Intent(NamedTuple):
    """A decision whose fact is still missing: files to write, a model to copy."""

    stage: str
    round: int
    version: int
    key: tuple[Json, ...]
    event: e.TrainingTriggered | e.EvaluationTriggered | e.DeployTriggered


class Failure(NamedTuple):
    """Why an intent did not become a fact yet, since when, and how often it was tried."""

    code: str
    error: str
    attempt: int
    time: str
    since: str


@dataclass(slots=True)
class JobState:
    """Where a job stands. Treat it as a value: only `evolve` and `fold` make one."""

    stream: str
    version: int = 0
    generation: int = 0
    deleted: bool = False
    deleted_at: str | None = None
    updated: str = ""
    kind: str = "LifelongLearningJob"
    metadata: JsonObject = field(default_factory=dict)
    spec: JsonObject = field(default_factory=dict)
    trigger: Trigger = Trigger()
    zone: str = "UTC"
    gm_message: str | None = None

    conditions_count: int = 0
    conditions_hash: str = ""
    last_condition: JsonObject | None = None
    train_models: Sequence[JsonObject] | None = None
    eval_models: Sequence[JsonObject] | None = None

    round: int = 0
    waiting: tuple[Json, ...] | None = None
    intent: Intent | None = None
    failure: Failure | None = None
    reports: tuple[Report, ...] = ()
    unconfirmed: tuple[Unconfirmed, ...] = ()
    train_status: str = "ready"
    eval_status: str = "ready"
    deploy_status: str = "ready"
    verdict: Verdict | None = None

    dataset: str | None = None
    dataset_url: str | None = None
    format: str = "txt"
    header: str | None = None
    place: Place | None = None
    adopted: bool = False
    seen: int = 0
    train_total: int = 0
    eval_total: int = 0
    split_seen: int = 0
    train_pending: tuple[SampleRange, ...] = ()
    eval_pending: tuple[SampleRange, ...] = ()
    eval_rounds: tuple[tuple[int, tuple[SampleRange, ...]], ...] = ()
    evaluated_round: int = 0

    train_data_url: str | None = None
    eval_data_url: str | None = None
    model: JsonObject | None = None

    ticks: int = 0
    gm_messages: int = 0
    worker_results: int = 0
    duplicates: int = 0

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return self.stream.split("/")[0]

    @property
    def name(self) -> str:
        """The job's name."""
        return self.stream.split("/")[2]

    @property
    def stage(self) -> str | None:
        """The stage of the last condition: `Train`, `Eval` or `Deploy`."""
        return None if self.last_condition is None else str(self.last_condition.get("stage"))

    @property
    def type(self) -> str | None:
        """The type of the last condition: `Waiting`, `Ready`, `Starting`, `Running`, `Completed` or `Failed`."""
        return None if self.last_condition is None else str(self.last_condition.get("type"))

    @property
    def is_live(self) -> bool:
        """Whether GM has inserted the job and not deleted it."""
        return self.generation > 0 and not self.deleted

    @property
    def is_waiting(self) -> bool:
        """Whether the job stands at a waiting condition that was not reported yet; such a job is ticked."""
        return self.is_live and self.waiting is not None and self.report_of(self.waiting) is None

    @property
    def train_pending_count(self) -> int:
        """Samples that the next round will train on: the metric `num_of_samples`."""
        return sum(r.size for r in self.train_pending)

    @property
    def output_dir(self) -> str:
        """The job's output URL without a trailing slash."""
        return str(self.spec.get("outputDir", "")).rstrip("/")

    @property
    def dataset_name(self) -> str | None:
        """The name of the dataset that the spec asks for, in the job's namespace."""
        dataset = self.spec.get("dataset")
        return str(dataset["name"]) if isinstance(dataset, dict) else None

    @property
    def train_prob(self) -> float:
        """The share of samples that train."""
        dataset = self.spec.get("dataset")
        return float(dataset["trainProb"]) if isinstance(dataset, dict) else 0.0

    @property
    def uid(self) -> str | None:
        """Kubernetes' uid, if there is one."""
        uid = self.metadata.get("uid")
        return None if uid is None else str(uid)

    @property
    def next_eval_round(self) -> int:
        """The round whose eval file comes next: this one until it was evaluated or training waits again."""
        waits_for_training = self.stage in (None, "Train") and self.train_status == "ready"
        return self.round + 1 if waits_for_training or self.evaluated_round >= self.round else self.round

    def eval_window(self, round_: int) -> tuple[tuple[int, tuple[SampleRange, ...]], ...]:
        """The earlier rounds, oldest first, whose eval samples the eval file of `round_` repeats."""
        return tuple(entry for entry in self.eval_rounds if round_ - EVAL_WINDOW < entry[0] < round_)

    def report_of(self, key: tuple[Json, ...]) -> Report | None:
        """The report that answered a waiting condition, if it is among the last 20."""
        return next((report for report in self.reports if report.key == key), None)

    def copy(self) -> JobState:
        """A state that `evolve` may write to; the values in it are never written to."""
        return replace(self)


def evolve(state: JobState, event: e.Event) -> JobState:
    """The state after one more event; the state before is left as it was."""
    after = state.copy()
    _apply(after, event)
    return after


def fold(stream: str, events: Iterable[e.Event], start: JobState | None = None) -> JobState:
    """The state after all `events`, in version order."""
    state = JobState(stream) if start is None else start.copy()
    for event in events:
        _apply(state, event)
    return state


def _apply(state: JobState, event: e.Event) -> None:
    state.version = event.originator_version
    state.updated = event.time
    _APPLY[type(event)](state, event)


def _gm_message_received(state: JobState, event: e.GlobalManagerMessageReceived) -> None:
    state.gm_messages += 1
    state.gm_message = event.id or state.gm_message
    if event.zone is not None:
        state.zone = event.zone
    if event.operation == "delete":
        return
    if event.generation is not None:
        _begin_generation(state, event.generation)
    if event.kind is not None:
        state.kind = event.kind
    if event.metadata is not None:
        state.metadata = event.metadata
    if event.spec is not None:
        before = (state.dataset_name, state.train_prob)
        state.spec = event.spec
        state.trigger = Trigger.read(event.spec)
        if state.dataset_name != before[0]:
            state.place = None
        if state.train_prob != before[1]:
            state.split_seen = 0
    _apply_conditions(state, event)
    _judged(state, event.reason, event.samples, event.note, event.time)


def _begin_generation(state: JobState, generation: int) -> None:
    fresh = JobState(state.stream)
    results = tuple(u for u in state.unconfirmed if u.is_result)
    kept = {
        "stream",
        "version",
        "updated",
        "zone",
        "gm_message",
        "ticks",
        "gm_messages",
        "worker_results",
        "duplicates",
    }
    for f in fields(JobState):
        if f.name not in kept:
            setattr(state, f.name, getattr(fresh, f.name))
    state.generation = generation
    state.unconfirmed = results


def _apply_conditions(state: JobState, event: e.GlobalManagerMessageReceived) -> None:
    state.conditions_count = event.conditions_count
    state.conditions_hash = event.conditions_hash
    for condition in event.conditions:
        state.last_condition = condition
        if (models := models_of(condition)) is not None and condition.get("stage") == "Train":
            state.train_models = models
        elif models is not None and condition.get("stage") == "Eval":
            state.eval_models = models
    if event.conditions and event.generation is None:
        state.unconfirmed = tuple(u for u in state.unconfirmed if not is_proven(u.stage, u.rank, event.conditions))
    key = waiting_key(state.uid, state.conditions_count, state.last_condition)
    if key == state.waiting:
        return
    state.waiting = key
    if key is None or state.report_of(key) is not None:
        return
    if state.stage == "Train":
        state.train_status = state.eval_status = state.deploy_status = "ready"
    if state.intent is not None and state.intent.stage == state.stage:
        state.intent = state.intent._replace(key=key)


def _judged(state: JobState, reason: str | None, samples: int, note: str | None, as_of: str) -> None:
    if reason is not None and state.stage is not None:
        state.verdict = Verdict(as_of, state.stage, reason, samples, state.trigger, state.zone, note)


def _duplicate_received(state: JobState, event: e.DuplicateReceived) -> None:
    state.duplicates += 1
    if event.worker is None:
        state.gm_message = event.id or state.gm_message


def _reports_confirmed(state: JobState, event: e.ReportsConfirmed) -> None:
    versions = set(event.versions)
    state.unconfirmed = tuple(u for u in state.unconfirmed if u.version not in versions)


def _worker_result_received(state: JobState, event: e.WorkerResultReceived) -> None:
    state.worker_results += 1
    stage, rank = rank_of_result(event.kind, event.status)
    state.unconfirmed += (Unconfirmed(event.originator_version, stage, rank, is_result=True, time=event.time),)


def _ticked(state: JobState, event: e.Ticked) -> None:
    state.ticks += 1
    if event.zone is not None:
        state.zone = event.zone
    _judged(state, event.reason, event.samples, event.note, event.as_of or event.time)


def _samples_arrived(state: JobState, event: e.SamplesArrived) -> None:
    state.dataset = event.dataset or state.dataset
    state.dataset_url = event.url or state.dataset_url
    state.format = event.format or state.format
    state.header = event.header if event.header is not None else state.header
    state.place = Place(event.epoch, event.rows[1], event.bytes[1])
    state.adopted = False
    if event.spooled is not None:
        first, last = event.spooled
        middle = first + event.train
        if event.train:
            state.train_pending = (*state.train_pending, SampleRange(first, middle, state.header))
        if event.eval:
            state.eval_pending = (*state.eval_pending, SampleRange(middle, last, state.header))
    state.seen += event.train + event.eval
    state.split_seen += event.train + event.eval
    state.train_total += event.train
    state.eval_total += event.eval
    _judged(state, event.reason, event.samples, None, event.time)


def _training_triggered(state: JobState, event: e.TrainingTriggered) -> None:
    state.round = event.round
    taken = sum(last - first for first, last in event.spooled)
    state.train_pending = _without_first(state.train_pending, taken)
    _intend(state, "Train", event)


def _evaluation_triggered(state: JobState, event: e.EvaluationTriggered) -> None:
    taken = tuple(SampleRange(first, last, event.header) for first, last in event.taken)
    state.eval_pending = _without_first(state.eval_pending, sum(r.size for r in taken))
    kept = state.eval_window(event.round + 1)
    state.eval_rounds = (*(entry for entry in kept if entry[0] != event.round), (event.round, taken))
    state.evaluated_round = event.round
    _intend(state, "Eval", event)


def _without_first(ranges: tuple[SampleRange, ...], count: int) -> tuple[SampleRange, ...]:
    rest = []
    for r in ranges:
        taken = min(count, r.size)
        count -= taken
        if taken < r.size:
            rest.append(r._replace(first=r.first + taken))
    return tuple(rest)


def _intend(
    state: JobState, stage: str, event: e.TrainingTriggered | e.EvaluationTriggered | e.DeployTriggered
) -> None:
    state.intent = Intent(stage, event.round, event.originator_version, tuple(event.waiting), event)
    state.failure = None


def _train_data_written(state: JobState, event: e.TrainDataWritten) -> None:
    state.train_data_url = str(event.input["dataURL"])
    state.train_status = "completed"
    _reported(state, "Train", event)


def _eval_data_written(state: JobState, event: e.EvalDataWritten) -> None:
    state.eval_data_url = str(event.input["dataURL"])
    state.eval_status = "completed"
    _reported(state, "Eval", event)


def _deploy_triggered(state: JobState, event: e.DeployTriggered) -> None:
    _intend(state, "Deploy", event)
    if event.model is None:
        state.deploy_status = "completed"
        _reported(state, "Deploy", event)


def _model_deployed(state: JobState, event: e.ModelDeployed) -> None:
    state.model = {
        "round": event.round,
        "url": event.url,
        "format": event.format,
        "sha256": event.sha256,
        "size": event.size,
        "time": event.time,
    }
    state.deploy_status = "completed"
    _reported(state, "Deploy", event)


def _trigger_failed(state: JobState, event: e.TriggerFailed) -> None:
    since = state.failure.since if state.failure else event.time
    state.failure = Failure(event.code, event.error, event.attempt, event.time, since)
    if event.final:
        state.deploy_status = "completed"
        _reported(state, event.stage, event)


def _reported(state: JobState, stage: str, event: e.Event) -> None:
    """A report went up: it answers the waiting condition and takes the place of an older report."""
    if state.intent is None:
        return
    report = Report(state.intent.key, stage, state.intent.round, event.originator_version)
    state.reports = (*state.reports, report)[-KEPT_REPORTS:]
    results = tuple(u for u in state.unconfirmed if u.is_result)
    newest = Unconfirmed(event.originator_version, stage, READY, is_result=False, time=event.time)
    state.unconfirmed = (*results, newest)
    state.intent = None
    if not isinstance(event, e.TriggerFailed):
        state.failure = None


def _job_adopted(state: JobState, event: e.JobAdopted) -> None:
    state.round = event.round
    state.train_data_url = event.train_data_url
    state.format = event.format
    state.adopted = True
    if state.stage != "Train" or state.type != "Waiting":
        state.train_status = "completed"


def _job_deleted(state: JobState, event: e.JobDeleted) -> None:
    state.deleted = True
    state.deleted_at = event.time
    state.waiting = None
    state.intent = None
    state.failure = None


E_ = TypeVar("E_", bound=e.Event)
_APPLY: dict[type[e.Event], Callable[[JobState, e.Event], None]] = {}


def _on(event_class: type[E_], apply: Callable[[JobState, E_], None]) -> None:
    _APPLY[event_class] = apply  # type: ignore[assignment]


_on(e.GlobalManagerMessageReceived, _gm_message_received)
_on(e.DuplicateReceived, _duplicate_received)
_on(e.ReportsConfirmed, _reports_confirmed)
_on(e.WorkerResultReceived, _worker_result_received)
_on(e.Ticked, _ticked)
_on(e.SamplesArrived, _samples_arrived)
_on(e.TrainingTriggered, _training_triggered)
_on(e.TrainDataWritten, _train_data_written)
_on(e.EvaluationTriggered, _evaluation_triggered)
_on(e.EvalDataWritten, _eval_data_written)
_on(e.DeployTriggered, _deploy_triggered)
_on(e.ModelDeployed, _model_deployed)
_on(e.TriggerFailed, _trigger_failed)
_on(e.JobAdopted, _job_adopted)
_on(e.JobDeleted, _job_deleted)
