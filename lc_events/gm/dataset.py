"""A dataset as the global manager keeps it: where it lies, and how many records its LC counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lc_events.domain.events import Event
from lc_events.gm import events as e
from lc_events.gm.resource import ResourceState, apply_to_resource
from lc_events.messages.json import JsonObject

__all__ = ["GmDataset", "evolve_dataset", "fold_dataset"]


@dataclass(slots=True)
class GmDataset(ResourceState):
    """Where a dataset stands."""

    samples: int = 0
    counted_at: str | None = None

    @property
    def node(self) -> str | None:
        """The node whose LC follows the dataset."""
        node = self.spec.get("nodeName")
        return node if isinstance(node, str) else None

    @property
    def url(self) -> str:
        """Where the file or object lies."""
        return str(self.spec.get("url", ""))

    def status(self) -> JsonObject:
        """`numberOfSamples`, and when it was counted."""
        counted = {} if self.counted_at is None else {"updateTime": self.counted_at}
        return {"numberOfSamples": self.samples, **counted}


def evolve_dataset(state: GmDataset, event: Event) -> GmDataset:
    """The state after one more event; the state before is left as it was."""
    after = state.copy()
    _apply(after, event)
    return after


def fold_dataset(stream: str, events: Iterable[Event]) -> GmDataset:
    """The state after all `events`, in version order."""
    state = GmDataset(stream)
    for event in events:
        _apply(state, event)
    return state


def _apply(state: GmDataset, event: Event) -> None:
    state.version, state.updated = event.originator_version, event.time
    node_before = state.node
    if isinstance(event, e.ResourceApplied) and event.generation is not None:
        state.samples, state.counted_at = 0, None
        state.metadata, state.spec, state.spec_generation = {}, {}, 0
    apply_to_resource(state, event)
    match event:
        case e.ResourceApplied():
            if node_before != state.node:
                state.take_back(node_before)
            state.send(state.node)
        case e.ReportReceived(ignored=None):
            samples = event.content.get("numberOfSamples")
            if isinstance(samples, int):
                state.samples, state.counted_at = samples, event.time
