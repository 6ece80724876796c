"""Sedna's custom resources (`sedna.io/v1alpha1`) as they are: checked where the LC relies on them, kept whole."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from lc_events.messages.names import is_namespace, is_resource_name

__all__ = [
    "Condition",
    "Dataset",
    "LifelongLearningJob",
    "Metadata",
    "Stage",
    "Trigger",
    "TriggerCondition",
    "Window",
    "below",
    "is_s3",
]

Stage = Literal["Train", "Eval", "Deploy"]
OPERATORS = ("gt", ">", "ge", ">=", "eq", "=", "==", "ne", "!=", "le", "<=", "lt", "<")

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")


def is_s3(url: str) -> bool:
    """Whether a resource's URL names an object (`s3://bucket/key`) rather than a local path."""
    return url.startswith("s3://")


def below(url: str, folder: str) -> bool:
    """Whether a URL names something under `folder`, by its text alone; the storage checks symlinks."""
    if is_s3(url) != is_s3(folder):
        return False
    if is_s3(url):
        prefix = folder.rstrip("/") + "/"
        return ".." not in url.split("/") and url.startswith(prefix) and url != prefix
    return url.startswith("/") and _normal(url).startswith(_normal(folder).rstrip("/") + "/")


def _normal(path: str) -> str:
    """A local path without `.`, `..` and doubled slashes; POSIX would keep two leading ones."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _url(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "s3":
        raise ValueError("a URL must be a local absolute path or s3://bucket/key")
    if separator and not rest.split("/")[0]:
        raise ValueError("an s3:// URL must name a bucket")
    if not separator and not url.startswith("/"):
        raise ValueError("a local URL must be an absolute path")
    if ".." in url.split("/"):
        raise ValueError("a URL must not hold '..': it could leave the root that is served")
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in url):
        raise ValueError("a URL must not hold control characters")
    return url


def _default_namespace(namespace: object) -> object:
    return namespace or "default"


def _checked_namespace(namespace: str) -> str:
    if not is_namespace(namespace):
        raise ValueError("a namespace must be an RFC 1123 label: a-z 0-9 and - inside")
    return namespace


def _checked_name(name: str) -> str:
    if not is_resource_name(name):
        raise ValueError("a name must be an RFC 1123 subdomain: labels of a-z 0-9 and - inside, with dots between")
    return name


Url = Annotated[str, StringConstraints(max_length=4096), AfterValidator(_url)]
Namespace = Annotated[str, BeforeValidator(_default_namespace), AfterValidator(_checked_namespace)]
ResourceName = Annotated[str, AfterValidator(_checked_name)]


class _Resource(BaseModel):
    """Fields that we do not use are kept: a resource belongs to whoever wrote it."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Metadata(_Resource):
    """The part of Kubernetes' ObjectMeta that identifies an object; `uid` may be absent without Kubernetes."""

    name: ResourceName
    namespace: Namespace = "default"
    uid: str | None = None
    annotations: dict[str, str] | None = None


class TriggerCondition(_Resource):
    """`METRIC OPERATOR THRESHOLD`; Go always sends the struct, so both words empty means there is none."""

    operator: str = ""
    threshold: float = 0.0
    metric: str = ""

    @property
    def is_absent(self) -> bool:
        """Whether this is Go's empty struct, not a condition."""
        return not self.operator and not self.metric

    @model_validator(mode="before")
    @classmethod
    def _read_numeric_threshold(cls, data: Any) -> Any:
        if isinstance(data, dict):
            if isinstance(data.get("threshold"), bool):
                raise ValueError("threshold must be a number")
            if data.get("threshold") in (None, ""):
                return {**data, "threshold": 0.0}
        return data

    @model_validator(mode="after")
    def _check(self) -> TriggerCondition:
        if self.is_absent:
            return self
        if self.operator not in OPERATORS:
            raise ValueError(f"operator {self.operator[:20]!r} is not one of {' '.join(OPERATORS)}")
        if "[" in self.metric or "]" in self.metric:
            raise ValueError(f"metric {self.metric[:40]!r} holds a bracket; write num_of_samples, without one")
        if not abs(self.threshold) < float("inf"):
            raise ValueError("threshold must be a finite number")
        return self


class Window(_Resource):
    """A daily window by the wall clock, from the start minute to the end minute inclusive, as Sedna's timer.

    `24:00` is the end of the day; an end before the start lies on the next day.
    """

    start: str = ""
    end: str = ""

    @property
    def is_absent(self) -> bool:
        """Whether neither end is set, as in Go's empty struct."""
        return not self.start and not self.end

    @property
    def minutes(self) -> tuple[int, int]:
        """Start and end in minutes since midnight, the end up to 1440."""
        return _minutes(self.start, last=1439), _minutes(self.end, last=1440)

    @model_validator(mode="after")
    def _check(self) -> Window:
        if not self.is_absent:
            _ = self.minutes
        return self


def _minutes(text: str, *, last: int) -> int:
    match = _CLOCK.fullmatch(text)
    minutes = int(match[1]) * 60 + int(match[2]) if match and int(match[2]) < 60 else -1
    if not 0 <= minutes <= last:
        raise ValueError(f"{text[:20]!r} is not a time of day HH:MM (an end may be 24:00)")
    return minutes


class Trigger(_Resource):
    """When a waiting Train stage becomes ready: window AND condition, an absent part being true."""

    check_period_seconds: int | None = Field(default=None, alias="checkPeriodSeconds", ge=0, le=31_536_000)
    timer: Window | None = None
    condition: TriggerCondition | None = None


class TrainSpec(_Resource):
    """How to train; the pod template is the workers' business."""

    trigger: Trigger | None = None
    template: dict[str, Any] | None = None


class StageSpec(_Resource):
    """How to evaluate or to serve."""

    template: dict[str, Any] | None = None


class JobDataset(_Resource):
    """Which dataset a job learns from, and the share of its samples that trains, a decimal in [0, 1] as written."""

    name: ResourceName
    train_prob: float = Field(alias="trainProb", ge=0, le=1, strict=True)


class JobSpec(_Resource):
    """The spec of a LifelongLearningJob; without credentials, which travel in an annotation."""

    dataset: JobDataset
    train_spec: TrainSpec = Field(default_factory=TrainSpec, alias="trainSpec")
    eval_spec: StageSpec = Field(default_factory=StageSpec, alias="evalSpec")
    deploy_spec: StageSpec = Field(default_factory=StageSpec, alias="deploySpec")
    output_dir: Url = Field(alias="outputDir")


class Condition(_Resource):
    """One entry of GM's list: where a job stands. `data` is a JSON string with `input` or `output`."""

    type: str
    stage: str
    status: str = "True"
    last_transition_time: str | None = Field(default=None, alias="lastTransitionTime")
    data: str | None = None


class JobStatus(_Resource):
    """GM's status of a job; the last condition is its stage and type."""

    conditions: list[Condition] | None = None


def _checked_api_version(version: str) -> str:
    if version != "sedna.io/v1alpha1":
        raise ValueError("apiVersion must be sedna.io/v1alpha1")
    return version


ApiVersion = Annotated[str, AfterValidator(_checked_api_version)]


class LifelongLearningJob(_Resource):
    """Sedna's LifelongLearningJob (pkg/apis/sedna/v1alpha1/lifelonglearningjob_types.go)."""

    api_version: ApiVersion = Field(default="sedna.io/v1alpha1", alias="apiVersion")
    kind: str = "LifelongLearningJob"
    metadata: Metadata
    spec: JobSpec
    status: JobStatus | None = None


class DatasetSpec(_Resource):
    """Where a dataset lies and how its records are written."""

    url: Url
    format: Annotated[str, StringConstraints(pattern=r"(?i)\A(txt|csv)\z")]
    node_name: str | None = Field(default=None, alias="nodeName")


class Dataset(_Resource):
    """Sedna's Dataset (pkg/apis/sedna/v1alpha1/dataset_types.go)."""

    api_version: ApiVersion = Field(default="sedna.io/v1alpha1", alias="apiVersion")
    kind: str = "Dataset"
    metadata: Metadata
    spec: DatasetSpec
