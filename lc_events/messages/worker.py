"""What a worker tells the local controller of its node (Sedna's `workers.MessageContent`), and work orders."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lc_events.errors import RefusedError
from lc_events.messages.gm import MessageId, explain
from lc_events.messages.json import UINT64_MAX, JsonObject, dumps, loads_object
from lc_events.messages.names import JOB_KIND
from lc_events.messages.resources import Namespace, ResourceName

__all__ = ["CancelOrder", "Done", "WorkOrder", "WorkerMessage", "done", "failure_words", "read_order", "read_worker"]

Word64 = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class WorkerMessage(BaseModel):
    """A worker's report; `results` and `ownerInfo` are passed on verbatim, null and absent alike become null."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    id: MessageId | None = None
    name: str
    namespace: Namespace = "default"
    owner_name: ResourceName = Field(alias="ownerName")
    owner_kind: str = Field(alias="ownerKind")
    owner_info: dict[str, Any] | None = Field(default=None, alias="ownerInfo")
    kind: Word64
    status: Word64
    results: list[dict[str, Any] | None] | None = None


def read_worker(payload: bytes, *, worker: str) -> WorkerMessage:
    """Read what `worker` (the topic's level) sent.

    Raises RefusedError: `malformed`, `kind` (the owner is no job), `mismatch` (another name than the topic's).
    """
    try:
        message = WorkerMessage.model_validate(loads_object(payload, max_integer=UINT64_MAX))
    except ValidationError as error:
        raise RefusedError(explain(error)) from None
    if message.owner_kind != JOB_KIND:
        raise RefusedError(f"ownerKind {message.owner_kind[:40]!r} is not {JOB_KIND}", code="kind")
    if message.name != worker:
        raise RefusedError(f"the topic names worker {worker!r}, the message {message.name[:80]!r}", code="mismatch")
    return message


def failure_words(owner_info: JsonObject | None, *, longest: int | None = None) -> str:
    """What an agent's `ownerInfo` says of a run that failed: `: exited with 2; its output is in FILE`, or nothing.

    Error and file are cut to `longest` characters each, for anybody may have written them.
    """
    info = owner_info or {}
    error, file = info.get("error"), info.get("output_file")
    if error in (None, ""):
        return ""
    where = f"; its output is in {file[:longest]}" if isinstance(file, str) else ""
    return f": {str(error)[:longest]}{where}"


class Done(BaseModel):
    """`sedna/worker/NODE/WORKER/done`: that message is on the LC's disk, or refused under `error`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str | None
    error: str | None = None


def done(message_id: str | None, error: str | None = None) -> bytes:
    """Write a `done`."""
    return dumps({"id": message_id, "error": error})


class WorkOrder(BaseModel):
    """`sedna/work/NODE/WORKER`: run a stage's program, or cancel it. It carries no secret.

    Paths in `args` and `env` are URLs as in the resource; the agent puts its own root before local ones.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    id: MessageId
    cancel: Literal[False] = False
    namespace: Namespace = "default"
    job: ResourceName
    stage: Literal["Train", "Eval", "Deploy"]
    round: int = Field(ge=0)
    command: list[str] = Field(min_length=1)
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    secret_env: list[str] = Field(default_factory=list, description="names whose values are the agent's own")
    output_url: str | None = None
    result_file: str = "result.json"


class CancelOrder(BaseModel):
    """`{"id": …, "cancel": true}`: stop what the order `id` started."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: MessageId
    cancel: Literal[True]


def read_order(payload: bytes) -> WorkOrder | CancelOrder:
    """Read a work order; RefusedError `malformed` if it is none."""
    data = loads_object(payload)
    try:
        return CancelOrder.model_validate(data) if data.get("cancel") is True else WorkOrder.model_validate(data)
    except ValidationError as error:
        raise RefusedError(explain(error)) from None
