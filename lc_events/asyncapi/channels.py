"""The topic table of CONTRACT section 2: who sends what to whom, in which form. All else here is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from lc_events.gm.requests import ApplyRequest
from lc_events.messages.gm import Acknowledgement, ResourceMessage, UpMessage
from lc_events.messages.requests import Answer, Ask
from lc_events.messages.state import (
    CloudEvent,
    DatasetValue,
    ErrorReport,
    HeadValue,
    JobStateValue,
    ModelValue,
    OutboxValue,
    StatusValue,
    TickRequest,
)
from lc_events.messages.worker import Done, WorkerMessage, WorkOrder
from lc_events.mqtt.topics import TopicKind

__all__ = ["CHANNELS", "Channel"]

Side = Literal["lc", "gm", "worker", "agent", "operator", "bridge", "anyone"]


@dataclass(frozen=True)
class Channel:
    """One topic pattern. `example` names the file of a real message; `model` is None for Mosquitto's `1` or `0`."""

    kind: TopicKind
    sender: Side
    receiver: Side
    model: type[BaseModel] | None
    example: str
    says: str
    retained: bool = False

    @property
    def address(self) -> str:
        """The pattern below the root."""
        return self.kind.value

    @property
    def name(self) -> str:
        """The channel's name in the document."""
        return self.kind.name.lower()


CHANNELS = (
    Channel(TopicKind.DOWN, "gm", "lc", ResourceMessage, "down_resource", "insert, update or delete of a resource"),
    Channel(TopicKind.DOWN_ACK, "gm", "lc", Acknowledgement, "down_ack", "these upstream ids are on GM's disk"),
    Channel(TopicKind.UP, "lc", "gm", UpMessage, "up_status", "status of a job or a dataset"),
    Channel(
        TopicKind.WORKER_INFO, "worker", "lc", WorkerMessage, "worker_info", "a worker's report; stays on the edge"
    ),
    Channel(TopicKind.WORKER_DONE, "lc", "worker", Done, "worker_done", "that report is on the LC's disk, or refused"),
    Channel(
        TopicKind.TICK, "operator", "lc", TickRequest, "tick", "one tick of every waiting job; 10 a second at most"
    ),
    Channel(TopicKind.STATUS, "lc", "anyone", StatusValue, "status", "birth and will of the LC", retained=True),
    Channel(TopicKind.LINK, "bridge", "anyone", None, "", "the bridge's link to the cloud: 1 or 0", retained=True),
    Channel(
        TopicKind.OUTBOX,
        "lc",
        "lc",
        OutboxValue,
        "outbox",
        "how far this broker has the LC's log; stays on the edge",
        retained=True,
    ),
    Channel(
        TopicKind.STATE_JOB, "lc", "anyone", JobStateValue, "state_job", "job state; empty once deleted", retained=True
    ),
    Channel(TopicKind.STATE_MODEL, "lc", "anyone", ModelValue, "state_model", "the deployed model", retained=True),
    Channel(TopicKind.STATE_DATASET, "lc", "anyone", DatasetValue, "state_dataset", "dataset state", retained=True),
    Channel(TopicKind.STATE_HEAD, "lc", "anyone", HeadValue, "state_head", "head of the job's stream", retained=True),
    Channel(TopicKind.EVENT_JOB, "lc", "anyone", CloudEvent, "event", "one event of a job, CloudEvents 1.0"),
    Channel(TopicKind.EVENT_DATASET, "lc", "anyone", CloudEvent, "event", "one event of a dataset, CloudEvents 1.0"),
    Channel(TopicKind.ERRORS, "lc", "anyone", ErrorReport, "errors", "what was refused, and why"),
    Channel(TopicKind.ASK, "anyone", "lc", Ask, "ask", "a request: state, history, why or verify; 20 a second at most"),
    Channel(TopicKind.ANSWER, "lc", "anyone", Answer, "answer", "the response; at most 256 KiB"),
    Channel(TopicKind.APPLY, "operator", "gm", ApplyRequest, "apply", "a manifest for our global manager"),
    Channel(TopicKind.WORK, "gm", "agent", WorkOrder, "work", "a work order; no secrets in it"),
)
