"""The events of the global manager's streams: one per job, one per dataset. Names never change.

A field that equals its default is not stored; `time` is the receipt, RFC 3339 in UTC with microseconds. Resources are
stored without their secrets.
"""

from __future__ import annotations

from dataclasses import dataclass

from lc_events.domain.events import Event, Registry
from lc_events.messages.json import JsonObject

__all__ = [
    "GM_EVENTS",
    "ConditionAppended",
    "DatasetLinked",
    "DeliveryConfirmed",
    "DeliveryRefused",
    "DuplicateReceived",
    "ReportReceived",
    "ResourceApplied",
    "ResourceDeleted",
    "WorkCancelled",
    "WorkOrdered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceApplied(Event):
    """An operator gave the resource; only what changed is stored. With a `generation` a life of the name begins."""

    generation: int | None = None
    uid: str | None = None
    kind: str | None = None
    metadata: JsonObject | None = None
    spec: JsonObject | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDeleted(Event):
    """A life of the name ended: `deleted` by an operator, or `replaced` by an object with another uid."""

    cause: str = "deleted"
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetLinked(Event):
    """Where the job's dataset lies, as far as it is known now: the LC of `node` decides for the job."""

    node: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionAppended(Event):
    """The job moved. `at` is the transition time where it is not `time`, `node` that of the stage's worker."""

    stage: str
    type: str
    at: str | None = None
    data: JsonObject | None = None
    message: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrdered(Event):
    """The agent of `node` is to run a stage's program as `worker`; `order` is a WorkOrder without its id."""

    id: str
    node: str
    worker: str
    order: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCancelled(Event):
    """What the order `id` started is to be stopped."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReceived(Event):
    """The LC of `node` reported a status; `ignored` says why it moved nothing."""

    node: str
    content: JsonObject
    id: str | None = None
    ignored: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateReceived(Event):
    """A report came again and had no second effect."""

    node: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfirmed(Event):
    """The LC of `node` shows that it has the message that `version` of this stream caused, or a later one."""

    node: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRefused(Event):
    """The LC of `node` refused the message that `version` of this stream caused."""

    node: str
    version: int
    code: str
    error: str


GM_EVENTS = Registry(
    (
        ResourceApplied,
        ResourceDeleted,
        DatasetLinked,
        ConditionAppended,
        WorkOrdered,
        WorkCancelled,
        ReportReceived,
        DuplicateReceived,
        DeliveryConfirmed,
        DeliveryRefused,
    )
)
