"""Where a job stands, as a value; `job_fold` alone makes new ones, from events."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import NamedTuple

from lc_events.domain import events as e
from lc_events.domain.backlog import Backlog
from lc_events.domain.trigger import Trigger
from lc_events.messages.json import Json, JsonObject
from lc_events.messages.names import OfStream
from lc_events.messages.resources import is_s3

__all__ = [
    "EVAL_WINDOW",
    "Failure",
    "Intent",
    "JobState",
    "Place",
    "Report",
    "SampleRange",
    "Source",
    "Verdict",
    "output_place",
]

EVAL_WINDOW = 5
"""Rounds whose eval samples an eval file holds (Sedna's EvalSamplesCapacity)."""


def output_place(url: str) -> str:
    """The folder that an output URL means: `/output//job1/.` is `/output/job1`; keys in S3 are what they say."""
    return url.rstrip("/") if is_s3(url) else posixpath.normpath("/" + url.lstrip("/"))


class Source(NamedTuple):
    """What samples have in common that may share a file: the dataset, where and how it lay, its csv header."""

    dataset: str
    url: str
    format: str
    header: str | None


class SampleRange(NamedTuple):
    """Samples `[first, last)` of a dataset's spool, of source number `source`."""

    first: int
    last: int
    source: int

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
class JobState(OfStream):
    """Where a job stands. Treat it as a value: only `job_fold` makes one."""

    stream: str
    version: int = 0
    generation: int = 0
    deleted: bool = False
    deleted_at: str | None = None
    updated: str = ""
    kind: str = "LifelongLearningJob"
    metadata: JsonObject = field(default_factory=dict)
    spec: JsonObject = field(default_factory=dict)
    trigger: Trigger = field(default_factory=Trigger)
    zone: str = "UTC"
    model_places: tuple[str, ...] = ()
    """Where models count besides below the outputDir, as far as this history was told."""
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
    unconfirmed: Backlog = field(default_factory=Backlog)
    train_status: str = "ready"
    eval_status: str = "ready"
    deploy_status: str = "ready"
    verdict: Verdict | None = None

    sources: tuple[Source, ...] = ()
    source_number: int = 0
    """Which of `sources` the newest samples came from."""
    adopted_format: str = "txt"
    place: Place | None = None
    spool_ends: Mapping[str, int] = field(default_factory=dict)
    """Dataset name to the spool position up to which this job's samples reach; outlives a generation."""
    adopted_round: int = 0
    existing_eval_round: int = 0
    """The round whose eval file another controller wrote."""
    seen: int = 0
    train_total: int = 0
    eval_total: int = 0
    split_seen: int = 0
    train_pending: tuple[SampleRange, ...] = ()
    train_pending_count: int = 0
    """Samples that the next round will train on: the metric `num_of_samples`."""
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
    def starts_at_end(self) -> bool:
        """Whether a job adopted from another controller still waits to be placed at its dataset's present end."""
        return bool(self.adopted_round) and self.place is None

    @property
    def source(self) -> Source | None:
        """Where the newest samples came from."""
        return self.sources[self.source_number] if self.sources else None

    @property
    def output_dir(self) -> str:
        """The job's output URL without a trailing slash."""
        return str(self.spec.get("outputDir", "")).rstrip("/")

    @property
    def model_note(self) -> str | None:
        """Why no trained model counts, where there are some; the words are stored, so they stay as they are."""
        return "the trained model's URL is not below the job's outputDir" if self.train_models else None

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
        if self.intent is None and self.is_waiting and self.stage != "Deploy":
            return self.round if self.stage == "Eval" else self.round + 1
        return self.round if self.evaluated_round < self.round else self.round + 1

    def eval_window(self, round_: int) -> tuple[tuple[int, tuple[SampleRange, ...]], ...]:
        """The earlier rounds, oldest first, whose eval samples the eval file of `round_` repeats."""
        return tuple(entry for entry in self.eval_rounds if round_ - EVAL_WINDOW < entry[0] < round_)

    def eval_ranges(self, round_: int) -> tuple[SampleRange, ...]:
        """The eval samples that belong to a round, as far as they are still in the window."""
        return next((ranges for number, ranges in self.eval_rounds if number == round_), ())

    def needed_of(self, dataset: str) -> Iterator[tuple[int, int]]:
        """Spool positions, `[first, last)`, of a dataset's samples that are still to be written, or written again."""
        ranges = [*self.train_pending, *self.eval_pending, *(r for _, kept in self.eval_rounds for r in kept)]
        yield from ((r.first, r.last) for r in ranges if self.sources[r.source].dataset == dataset)
        intended = None if self.intent is None else self.intent.event
        if isinstance(intended, (e.TrainingTriggered, e.EvaluationTriggered)) and intended.dataset == dataset:
            yield from ((first, last) for first, last in intended.spooled)

    def report_of(self, key: tuple[Json, ...]) -> Report | None:
        """The report that answered a waiting condition, if it is among the last 20."""
        return next((report for report in self.reports if report.key == key), None)

    def copy(self) -> JobState:
        """A state that `evolve` may write to; the values in it are never written to."""
        return JobState(*_values(self))


_values = attrgetter(*(f.name for f in fields(JobState)))
"""All that a state holds, in the order of its fields: five times as fast as `dataclasses.replace`."""
