"""What a job and a dataset have in common here: an applied resource, its lives, and who was sent it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from lc_events.domain.events import Event
from lc_events.gm import deliveries as d
from lc_events.gm import events as e
from lc_events.messages.json import Json, JsonObject
from lc_events.messages.names import OfStream

__all__ = ["API_VERSION", "ResourceState", "apply_to_resource", "given_metadata"]

API_VERSION = "sedna.io/v1alpha1"

_OURS = frozenset(
    {"name", "namespace", "uid", "generation", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"}
)
"""Metadata that an API server sets, and therefore we."""

_WORKER_NODES = frozenset({"sedna.io/Train", "sedna.io/Eval", "sedna.io/Deploy"})


@dataclass(slots=True)
class ResourceState(OfStream):
    """A resource as it was applied, without secrets. Treat it as a value: only a fold makes one."""

    stream: str
    version: int = 0
    generation: int = 0
    deleted: bool = False
    updated: str = ""
    kind: str = ""
    uid: str | None = None
    created: str = ""
    metadata: JsonObject = field(default_factory=dict)
    spec: JsonObject = field(default_factory=dict)
    spec_generation: int = 0
    deliveries: d.Deliveries = field(default_factory=dict)
    reports: int = 0
    duplicates: int = 0

    @property
    def is_live(self) -> bool:
        """Whether the resource was applied and not deleted since."""
        return self.generation > 0 and not self.deleted

    def body(self) -> JsonObject:
        """The whole resource as it is sent to a node, without its secrets."""
        given = self.metadata.get("annotations")
        annotations = {**(given if isinstance(given, dict) else {}), **self.own_annotations()}
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {
                **self.metadata,
                "name": self.name,
                "namespace": self.namespace,
                "uid": self.uid,
                "generation": self.spec_generation,
                "creationTimestamp": self.created,
                **({"annotations": annotations} if annotations else {}),
            },
            "spec": self.spec,
            "status": self.status(),
        }

    def own_annotations(self) -> dict[str, Json]:
        """Annotations that are ours to write."""
        return {}

    def status(self) -> JsonObject:
        """The resource's status as Sedna writes it."""
        return {}

    def copy(self) -> Self:
        """A state that a fold may write to; the values in it are never written to."""
        return replace(self)

    def send(self, node: str | None) -> None:
        """Have the resource, as it is now, sent to a node under the id of the newest event."""
        self.deliveries = d.send(self.deliveries, node, self.version, self.body())

    def take_back(self, node: str | None) -> None:
        """Have a node forget the resource."""
        metadata: JsonObject = {"name": self.name, "namespace": self.namespace, "uid": self.uid}
        identity: JsonObject = {"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata}
        self.deliveries = d.take_back(self.deliveries, node, self.version, identity)


def given_metadata(metadata: JsonObject) -> JsonObject:
    """What of a manifest's metadata is the operator's: all but what an API server, or the global manager, sets."""
    given = {name: value for name, value in metadata.items() if name not in _OURS}
    annotations = given.get("annotations")
    if isinstance(annotations, dict):
        given["annotations"] = {name: value for name, value in annotations.items() if name not in _WORKER_NODES}
    return given


def apply_to_resource(state: ResourceState, event: Event) -> None:
    """The part of the fold that jobs and datasets share."""
    match event:
        case e.ResourceApplied():
            _applied(state, event)
        case e.ResourceDeleted():
            state.deleted = True
            for node in d.holders(state.deliveries):
                state.take_back(node)
        case e.ReportReceived():
            state.reports += 1
        case e.DuplicateReceived():
            state.duplicates += 1
        case e.DeliveryConfirmed():
            state.deliveries = d.confirm(state.deliveries, event.node, event.version)
        case e.DeliveryRefused():
            refusal = d.Refusal(event.code, event.error, event.time)
            state.deliveries = d.refuse(state.deliveries, event.node, event.version, refusal)
        case _:
            raise TypeError(f"{type(event).__name__} is no event of {state.stream}")


def _applied(state: ResourceState, event: e.ResourceApplied) -> None:
    if event.generation is not None:
        state.generation, state.deleted = event.generation, False
        state.uid, state.created = event.uid, event.time
    state.kind = event.kind or state.kind
    state.metadata = state.metadata if event.metadata is None else event.metadata
    if event.spec is not None:
        state.spec = event.spec
        state.spec_generation += 1
    for node in d.holders(state.deliveries):
        state.send(node)
