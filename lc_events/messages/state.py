"""What the LC publishes of itself: latest values, errors, events as CloudEvents (CONTRACT sections 2, 5 and 6)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = [
    "CloudEvent",
    "DatasetValue",
    "ErrorReport",
    "HeadValue",
    "JobStateValue",
    "ModelValue",
    "OutboxValue",
    "StatusValue",
    "TickRequest",
]

Time = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T.*(Z|[+-][0-9]{2}:[0-9]{2})$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Value(BaseModel):
    """What we publish ourselves has no field that is not described here."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StatusValue(_Value):
    """Birth and will of the LC; the offline one carries the same session."""

    state: Literal["online", "offline"]
    session: str
    version: str
    time: Time


class Samples(_Value):
    """Counts of samples: `eval_pending` are those that the next eval file will hold."""

    seen: Count
    train_pending: Count
    eval_pending: Count
    eval_versions: Count
    train_total: Count
    eval_total: Count


class Triggers(_Value):
    """Trigger status per stage: `completed` from its report on, all `ready` again at a new Train/Waiting."""

    train: Literal["ready", "completed"]
    eval: Literal["ready", "completed"]
    deploy: Literal["ready", "completed"]


class VerdictValue(_Value):
    """What the trigger said last."""

    time: Time
    stage: str
    fired: bool
    reason: str
    detail: str


class ModelValue(_Value):
    """The deployed model; `size` in bytes."""

    round: Count
    url: str
    format: str
    sha256: Sha256
    size: Count
    time: Time


class Counts(_Value):
    """How much of each kind the job has had, in all generations."""

    ticks: Count
    gm_messages: Count
    worker_results: Count
    duplicates: Count


class JobStateValue(_Value):
    """The state of a job, a fold of its events; stage and type are null before GM's first condition."""

    namespace: str
    name: str
    node: str
    version: Count
    generation: Count
    deleted: bool
    stage: str | None
    type: str | None
    round: Count
    gm_message: str | None
    samples: Samples
    triggers: Triggers
    verdict: VerdictValue | None
    train_data_url: str | None
    eval_data_url: str | None
    model: ModelValue | None
    counts: Counts
    updated: Time


class DatasetValue(_Value):
    """The state of a dataset; `samples` are the records that the file holds now."""

    samples: Count
    url: str
    format: str
    error: str | None
    gm_message: str | None
    time: Time


class HeadValue(_Value):
    """Head of a job's stream, against which a history can be checked later."""

    version: Count
    hash: Sha256
    time: Time


class OutboxValue(_Value):
    """Up to which event the broker has the LC's log; `position` counts the events of all streams together."""

    position: Count
    time: Time


class ErrorReport(_Value):
    """What was refused, and why; `id` is that of the message if it had one."""

    code: str
    error: str
    topic: str
    id: str | None
    quarantine: str | None
    time: Time


class TickRequest(BaseModel):
    """One tick of every waiting job, as of `time` (now)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    time: Time | None = None


class CloudEvent(BaseModel):
    """One event as CloudEvents 1.0 structured JSON; `sequence` is the version, `data` the event as it is stored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    specversion: Literal["1.0"]
    id: str
    source: str
    subject: str
    type: Annotated[str, StringConstraints(pattern=r"^io\.sedna\.lc\.[A-Za-z]+\.v[0-9]+$")]
    time: Time
    datacontenttype: Literal["application/json"]
    sequence: Annotated[int, Field(ge=1)]
    hash: Sha256
    prevhash: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
    data: dict[str, Any]
