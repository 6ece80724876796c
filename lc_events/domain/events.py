"""The events of job and dataset streams: plain facts and decisions, JSON values only, under names that never change.

A field that equals its default is not stored, so a default never changes. `time` is the receipt, RFC 3339 in UTC with
microseconds. Ranges are `[first, last)`; `spooled` ranges count positions in the dataset's spool, `rows` records of
the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from lc_events.messages.json import Json, JsonObject

__all__ = [
    "DATASET_EVENTS",
    "JOB_EVENTS",
    "LC_EVENTS",
    "DatasetDeleted",
    "DatasetObserved",
    "DatasetReset",
    "DatasetUnreadable",
    "DeployTriggered",
    "DuplicateReceived",
    "EvalDataWritten",
    "EvaluationTriggered",
    "Event",
    "GlobalManagerMessageReceived",
    "JobAdopted",
    "JobDeleted",
    "ModelDeployed",
    "Registry",
    "ReportsConfirmed",
    "SamplesArrived",
    "Ticked",
    "TrainDataWritten",
    "TrainingTriggered",
    "TriggerFailed",
    "WorkerResultReceived",
]

RULES = 2
"""Version of the deciding code; a decision names the rules it followed, so that it can be derived again by them.

A decision that newer rules leave as it was goes on naming the older ones: 2 is about the models that count at Eval. The
default of the field stays 1 when this grows: like every default below, it is what old stores left out.
"""

Range = Sequence[int]
WrittenFile = JsonObject
"""`{"url", "size": bytes, "sha256": hex, "records"}` of a file that we wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened in a stream at a version."""

    originator_id: str
    originator_version: int
    time: str

    class_version: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalManagerMessageReceived(Event):
    """GM inserted, updated or deleted the resource; only what is new since the message before is stored.

    `conditions` are the new entries of GM's list, `conditions_count` and `conditions_hash` speak of the whole.
    `model_places` are what LC_MODEL_PLACES named, stored when that changed, as the zone is.
    """

    operation: str
    id: str | None = None
    generation: int | None = None
    kind: str | None = None
    metadata: JsonObject | None = None
    spec: JsonObject | None = None
    conditions: Sequence[JsonObject] = ()
    conditions_count: int = 0
    conditions_hash: str = ""
    zone: str | None = None
    samples: int = 0
    reason: str | None = None
    note: str | None = None
    rules: int = 1
    model_places: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateReceived(Event):
    """A message came again and had no second effect; `worker` names the sender if it was one."""

    id: str | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsConfirmed(Event):
    """GM has the reports that these versions of the stream caused on its disk."""

    versions: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResultReceived(Event):
    """A worker reported; `results` and `owner_info` go up verbatim."""

    worker: str
    kind: str
    status: str
    id: str | None = None
    results: Sequence[Json] | None = None
    owner_info: JsonObject | None = None
    resource_kind: str = "LifelongLearningJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked(Event):
    """The trigger of a waiting job was evaluated; `samples` is the count that it saw.

    `count` is above 1 where ticks that changed no verdict were only counted (LC_TICKS=decisive). `zone` and
    `model_places` as in `GlobalManagerMessageReceived`.
    """

    cause: str
    count: int = 1
    samples: int = 0
    reason: str | None = None
    note: str | None = None
    as_of: str | None = None
    zone: str | None = None
    rules: int = 1
    model_places: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesArrived(Event):
    """New samples of the dataset: the first `train` of them train, the other `eval` evaluate.

    `rows` and `bytes` say where they stood in file number `epoch`. `dataset`, `url`, `format` and `header` are stored
    when they changed, a header that is gone as "". With neither train nor eval samples the job only moved its place
    (adopted at the present end).
    """

    epoch: int
    rows: Range
    bytes: Range
    spooled: Range | None = None
    train: int = 0
    eval: int = 0
    dataset: str | None = None
    url: str | None = None
    format: str | None = None
    header: str | None = None
    samples: int = 0
    reason: str | None = None
    rules: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTriggered(Event):
    """The trigger fired: this round trains on these samples. `facts` are all that the decision rested on.

    `indexed` is the URL of the dataset's file where an index of the objects that the samples name is to be written.
    """

    round: int
    waiting: Sequence[Json]
    dataset: str
    spooled: Sequence[Range]
    samples: int
    input: JsonObject
    facts: JsonObject
    header: str | None = None
    indexed: str | None = None
    rules: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainDataWritten(Event):
    """The train files of a round are on disk; this is reported as Train/Ready with Sedna's `input`."""

    round: int
    input: JsonObject
    files: Sequence[WrittenFile]
    resource_kind: str = "LifelongLearningJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationTriggered(Event):
    """A round evaluates: `taken` are the samples that belong to it from now on, `spooled` all of its eval file.

    `indexed` as in `TrainingTriggered`.
    """

    round: int
    waiting: Sequence[Json]
    dataset: str
    spooled: Sequence[Range]
    taken: Sequence[Range]
    samples: int
    input: JsonObject
    header: str | None = None
    indexed: str | None = None
    existing: bool = False
    rules: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalDataWritten(Event):
    """The eval files of a round are on disk; this is reported as Eval/Ready with Sedna's `input`."""

    round: int
    input: JsonObject
    files: Sequence[WrittenFile]
    resource_kind: str = "LifelongLearningJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployTriggered(Event):
    """The evaluated model is to be copied to `target`; without a model this itself is reported as Deploy/Completed."""

    round: int
    waiting: Sequence[Json]
    model: JsonObject | None
    target: str | None = None
    resource_kind: str = "LifelongLearningJob"
    rules: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDeployed(Event):
    """The model is where devices read it; reported as Deploy/Ready with the evaluated `model`, the copy's source."""

    round: int
    model: JsonObject
    url: str
    format: str
    sha256: str
    size: int
    resource_kind: str = "LifelongLearningJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerFailed(Event):
    """What a trigger set off did not work yet; `final` means it never will and, for Deploy, is reported as Failed."""

    stage: str
    round: int
    attempt: int
    code: str
    error: str
    final: bool = False
    model: JsonObject | None = None
    resource_kind: str = "LifelongLearningJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAdopted(Event):
    """A job that another controller began: its round comes from `train_data_url`, its samples count from now."""

    round: int
    train_data_url: str
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeleted(Event):
    """A life of the name ended: `deleted` by GM, or `replaced` by an object with another uid."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetObserved(Event):
    """The file holds `records` records now; `mark` is where the follower goes on."""

    records: int
    rows: Range
    bytes: Range
    mark: JsonObject
    spooled: Range | None = None
    resource_kind: str = "Dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetReset(Event):
    """Counted content is gone or changed: what the file holds from now on are new samples."""

    cause: str
    epoch: int
    records: int
    mark: JsonObject | None = None
    resource_kind: str = "Dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetUnreadable(Event):
    """The file could not be read; recorded at first, when the error changes, then hourly."""

    code: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetDeleted(Event):
    """GM took the dataset away; its jobs stay and wait."""


class Registry(Mapping[str, type[Event]]):
    """Stable names of event classes, stored with the data, and the fields that each one stores."""

    def __init__(self, classes: Iterable[type[Event]]) -> None:
        self._classes = {cls.__name__: cls for cls in classes}
        self._stored = {
            cls: tuple((f.name, f.default) for f in fields(cls) if not f.name.startswith("originator_"))
            for cls in self._classes.values()
        }

    def __getitem__(self, name: str) -> type[Event]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def stored(self, event: Event) -> dict[str, object]:
        """The fields of an event that are written: all that differ from their defaults."""
        return {
            name: value for name, default in self._stored[type(event)] if (value := getattr(event, name)) != default
        }


JOB_EVENTS = (
    GlobalManagerMessageReceived,
    DuplicateReceived,
    ReportsConfirmed,
    WorkerResultReceived,
    Ticked,
    SamplesArrived,
    TrainingTriggered,
    TrainDataWritten,
    EvaluationTriggered,
    EvalDataWritten,
    DeployTriggered,
    ModelDeployed,
    TriggerFailed,
    JobAdopted,
    JobDeleted,
)
DATASET_EVENTS = (
    GlobalManagerMessageReceived,
    DuplicateReceived,
    ReportsConfirmed,
    DatasetObserved,
    DatasetReset,
    DatasetUnreadable,
    DatasetDeleted,
)
LC_EVENTS = tuple(dict.fromkeys((*JOB_EVENTS, *DATASET_EVENTS)))
