"""`sedna/apply/REQUEST`: what operators ask of the global manager (CONTRACT section 2), checked at the door."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from lc_events.errors import RefusedError
from lc_events.gm.template import NodeName, stage_template
from lc_events.messages.gm import explain
from lc_events.messages.json import JsonObject
from lc_events.messages.names import DATASET_KIND, JOB_KIND, Stream, stream_id
from lc_events.messages.resources import Dataset, LifelongLearningJob, Metadata

__all__ = ["ApplyRequest", "Named", "read_identity", "read_request", "read_resource"]

Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ApplyRequest(BaseModel):
    """Insert (create or replace) or delete a resource; a `request_id` that comes again has no second effect."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    request_id: Id | None = None
    reply_to: Id | None = None
    operation: Literal["insert", "delete"]
    resource: dict[str, Any]


class Named(NamedTuple):
    """Which resource a manifest is about."""

    kind: str
    namespace: str
    name: str

    @property
    def stream(self) -> Stream:
        """The stream of the resource."""
        return stream_id(self.namespace, self.kind, self.name)


class _Identity(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    metadata: Metadata


class _Placed(BaseModel):
    """A dataset's node, which only a global manager needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    nodeName: NodeName  # noqa: N815 - pydantic then names it in errors as the manifest does


def read_request(data: JsonObject) -> ApplyRequest:
    """Read a request; RefusedError `malformed` says what is missing."""
    try:
        return ApplyRequest.model_validate(data)
    except ValidationError as error:
        raise RefusedError(explain(error)) from None


def read_identity(resource: JsonObject) -> Named:
    """Kind and name of a manifest; RefusedError `kind` or `invalid`."""
    try:
        identity = _Identity.model_validate(resource)
    except ValidationError as error:
        raise RefusedError(explain(error), code="invalid") from None
    kind = identity.kind.lower()
    if kind not in (JOB_KIND, DATASET_KIND):
        raise RefusedError(f"kind {identity.kind[:40]!r} is not LifelongLearningJob or Dataset", code="kind")
    return Named(kind, identity.metadata.namespace, identity.metadata.name)


def read_resource(resource: JsonObject) -> Named:
    """Check a whole manifest, by the rules of an LC and those that only concern us; RefusedError `kind`, `invalid`."""
    named = read_identity(resource)
    try:
        if named.kind == JOB_KIND:
            LifelongLearningJob.model_validate(resource)
        else:
            Dataset.model_validate(resource)
    except ValidationError as error:
        raise RefusedError(explain(error), code="invalid") from None
    spec = resource["spec"]
    if isinstance(spec, dict) and named.kind == JOB_KIND:
        _check_templates(spec)
    elif isinstance(spec, dict):
        _check_place(spec)
    return named


def _check_templates(spec: JsonObject) -> None:
    for stage in ("Train", "Eval", "Deploy"):
        try:
            stage_template(spec, stage)
        except ValidationError as error:
            message = f"spec.{stage.lower()}Spec.template.{explain(error)}"
            raise RefusedError(message, code="invalid") from None


def _check_place(spec: JsonObject) -> None:
    try:
        _Placed.model_validate(spec)
    except ValidationError as error:
        raise RefusedError(f"spec.{explain(error)}", code="invalid") from None
