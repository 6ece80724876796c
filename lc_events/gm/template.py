"""The part of a stage's pod template that a node without Kubernetes can follow: one container, and where it runs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lc_events.messages.json import Json, JsonObject
from lc_events.messages.names import is_word

__all__ = ["Container", "NodeName", "PodTemplate", "stage_template"]

_SPECS = {"Train": "trainSpec", "Eval": "evalSpec", "Deploy": "deploySpec"}


def _checked_node(name: str) -> str:
    if not is_word(name) or name == "gm":
        raise ValueError("a node's name is 1 to 64 of A-Z a-z 0-9 _ . - and not gm, for it stands in every topic")
    return name


NodeName = Annotated[str, AfterValidator(_checked_node)]


class _Part(BaseModel):
    """What we do not follow (images, mounts, limits) is passed over, and kept in the resource."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class EnvVar(_Part):
    """A variable with a value, or with a reference to a value that is kept elsewhere."""

    name: str = Field(min_length=1)
    value: Annotated[str, Field(strict=True)] | None = None
    value_from: dict[str, Any] | None = Field(default=None, alias="valueFrom")


class Container(_Part):
    """The program of a stage. Without a `command` it is what Sedna's example images start: `python`."""

    command: list[str] = Field(default_factory=lambda: ["python"], min_length=1)
    args: list[str] = Field(default_factory=list)
    env: list[EnvVar] = Field(default_factory=list)


class _PodSpec(_Part):
    node_name: NodeName | None = Field(default=None, alias="nodeName")
    containers: list[Container] = Field(default_factory=list)


class PodTemplate(_Part):
    """`template` of a stage; a template without a container means that somebody else runs the stage's worker."""

    spec: _PodSpec = Field(default_factory=_PodSpec)

    @property
    def node(self) -> str | None:
        """Where the worker is to run, if not on the dataset's node."""
        return self.spec.node_name

    @property
    def container(self) -> Container | None:
        """The first container; the others are not run."""
        return next(iter(self.spec.containers), None)


def stage_template(spec: JsonObject, stage: str) -> PodTemplate:
    """The template of a stage of a job's spec; pydantic's ValidationError if it cannot be followed."""
    part = spec.get(_SPECS[stage])
    template: Json = part.get("template") if isinstance(part, dict) else None
    return PodTemplate.model_validate(template or {})
