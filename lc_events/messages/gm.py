"""Messages between the global manager and a local controller (Sedna's `model.Message`, with an id)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from lc_events.errors import RefusedError
from lc_events.messages.json import JsonObject, dumps, loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND, Stream, stream_id
from lc_events.messages.resources import Dataset, LifelongLearningJob, Namespace, ResourceName

__all__ = [
    "Acknowledgement",
    "DownMessage",
    "Header",
    "ResourceMessage",
    "UpMessage",
    "explain",
    "read_acknowledgement",
    "read_down",
    "up",
]

MessageId = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Operation = Literal["insert", "update", "delete"]
KINDS: dict[str, type[LifelongLearningJob | Dataset]] = {JOB_KIND: LifelongLearningJob, DATASET_KIND: Dataset}


class Header(BaseModel):
    """Whom a message is about and what to do; `resourceKind` is lower case on the way down."""

    model_config = ConfigDict(frozen=True, extra="allow")

    namespace: Namespace = "default"
    resource_kind: str = Field(alias="resourceKind")
    resource_name: ResourceName = Field(alias="resourceName")
    operation: str


def _decoded(content: object) -> object:
    """Content as an object, also from Sedna's websocket form: Go writes a byte slice as base64."""
    if not isinstance(content, str):
        return content
    try:
        return dict(loads_object(base64.b64decode(content, validate=True)))
    except (binascii.Error, RefusedError) as error:
        raise ValueError(f"content is a string, but not base64 of a JSON object: {error}") from None


class ResourceMessage(BaseModel):
    """Insert, update or delete of a resource, as it crosses; `content` is the resource, or base64 of it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: MessageId | None = None
    header: Header
    content: Annotated[dict[str, Any] | None, BeforeValidator(_decoded)] = None


@dataclass(frozen=True, slots=True)
class DownMessage:
    """An accepted insert, update or delete of a resource; `resource` is its validated form, None for a delete."""

    id: str | None
    operation: Operation
    kind: str
    namespace: str
    name: str
    content: JsonObject
    resource: LifelongLearningJob | Dataset | None

    @property
    def stream(self) -> Stream:
        """The stream of the resource."""
        return stream_id(self.namespace, self.kind, self.name)


def read_down(payload: bytes, *, kind: str, namespace: str, name: str) -> DownMessage:
    """Read a message whose topic names `kind`, `namespace` and `name`.

    Raises RefusedError: `malformed` (not JSON, a missing field), `kind`, `operation`, `mismatch` (topic, header and
    content disagree) or `invalid` (the resource breaks a rule of CONTRACT section 3).
    """
    try:
        envelope = ResourceMessage.model_validate(loads_object(payload))
    except ValidationError as error:
        raise RefusedError(explain(error)) from None
    header = envelope.header
    if kind not in KINDS:
        raise RefusedError(f"kind {kind[:40]!r} is not one of {', '.join(KINDS)}", code="kind")
    if header.operation not in ("insert", "update", "delete"):
        raise RefusedError(f"operation {header.operation[:40]!r} is not insert, update or delete", code="operation")
    named = (header.resource_kind.lower(), header.namespace, header.resource_name)
    if named != (kind, namespace, name):
        raise RefusedError(f"the topic names {kind}/{namespace}/{name}, the header {'/'.join(named)}", code="mismatch")
    content = envelope.content or {}
    resource = None if header.operation == "delete" else _read_resource(kind, namespace, name, content)
    operation: Operation = header.operation  # type: ignore[assignment]
    return DownMessage(envelope.id, operation, kind, namespace, name, content, resource)


def _read_resource(kind: str, namespace: str, name: str, content: JsonObject) -> LifelongLearningJob | Dataset:
    try:
        resource = KINDS[kind].model_validate(content)
    except ValidationError as error:
        raise RefusedError(explain(error), code="invalid") from None
    if resource.kind.lower() != kind:
        raise RefusedError(f"content is a {resource.kind[:40]!r}, the topic names a {kind}", code="mismatch")
    if (resource.metadata.namespace, resource.metadata.name) != (namespace, name):
        raise RefusedError(f"content is named {resource.metadata.name[:80]!r}, the topic {name!r}", code="mismatch")
    return resource


class Acknowledgement(BaseModel):
    """`sedna/down/NODE/ack`: these upstream ids are on GM's disk."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ids: list[MessageId] = Field(max_length=10_000)


def read_acknowledgement(payload: bytes) -> Acknowledgement:
    """Read GM's acknowledgement; RefusedError `malformed` for anything else."""
    try:
        return Acknowledgement.model_validate(loads_object(payload))
    except ValidationError as error:
        raise RefusedError(explain(error)) from None


class UpMessage(BaseModel):
    """A status of a job or dataset on its way up; `content` is what Sedna's LC sends, as an object or base64."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: MessageId | None = None
    header: Header
    content: Annotated[dict[str, Any], BeforeValidator(_decoded)]


def up(message_id: str, *, kind: str, namespace: str, name: str, content: JsonObject) -> bytes:
    """Write an upstream status; `kind` as in the resource's own `kind`."""
    header = {"namespace": namespace, "resourceKind": kind, "resourceName": name, "operation": "status"}
    return dumps({"id": message_id, "header": header, "content": content})


def explain(error: ValidationError) -> str:
    """The first fault in one line: where it is and what was expected, without the input (it may hold a secret)."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "message"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"
