"""What the global manager decides: `decide(state, command, facts) -> events`, for jobs and datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from uuid import UUID

from lc_events.domain.events import Event
from lc_events.domain.steps import Steps
from lc_events.gm import events as e
from lc_events.gm.dataset import GmDataset, evolve_dataset
from lc_events.gm.job import GmJob, evolve_job
from lc_events.gm.moves import append, misfit, move, stop_work
from lc_events.gm.report import Report
from lc_events.gm.resource import given_metadata
from lc_events.messages.json import JsonObject

__all__ = [
    "Facts",
    "Place",
    "apply_dataset",
    "apply_job",
    "confirm_delivery",
    "delete_resource",
    "link_dataset",
    "receive_duplicate",
    "receive_report",
    "receive_sample_count",
    "refuse_delivery",
]

S = TypeVar("S", bound=GmJob | GmDataset)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a decision needs from outside: receipt time, and 32 random hex digits for new names."""

    now: str
    token: str


class Place(NamedTuple):
    """Where a dataset lies."""

    node: str | None
    url: str | None


def apply_job(
    state: GmJob, resource: JsonObject, place: Place | None, facts: Facts, request: str | None = None
) -> tuple[list[Event], GmJob]:
    """Take a job's manifest; `place` is None as long as its dataset is not here. A new job waits for training."""
    steps = Steps(state, facts.now, evolve_job)
    begins = _apply(steps, resource, facts, request)
    if place is not None or begins or steps.state.dataset_name != state.dataset_name:
        _link(steps, place or Place(None, None))
    if begins:
        append(steps, "Train", "Waiting")
    return steps.events, steps.state


def apply_dataset(
    state: GmDataset, resource: JsonObject, facts: Facts, request: str | None = None
) -> tuple[list[Event], GmDataset]:
    """Take a dataset's manifest."""
    steps = Steps(state, facts.now, evolve_dataset)
    _apply(steps, resource, facts, request)
    return steps.events, steps.state


def _apply(steps: Steps[S], resource: JsonObject, facts: Facts, request: str | None) -> bool:
    """Record a manifest, with what changed of it; whether a life of the name begins."""
    metadata, spec, kind = (resource.get(part) for part in ("metadata", "spec", "kind"))
    given = metadata if isinstance(metadata, dict) else {}
    uid = given.get("uid")
    if steps.state.is_live and isinstance(uid, str) and uid != steps.state.uid:
        _end_life(steps, "replaced", request)
    before = steps.state
    begins = not before.is_live
    own = given_metadata(given)
    steps.add(
        e.ResourceApplied,
        generation=before.generation + 1 if begins else None,
        uid=(uid if isinstance(uid, str) else str(UUID(facts.token))) if begins else None,
        kind=None if kind == before.kind else kind,
        metadata=None if own == before.metadata and not begins else own,
        spec=None if spec == before.spec and not begins else spec,
        request=request,
    )
    return begins


def delete_resource(state: S, facts: Facts, request: str | None = None) -> tuple[list[Event], S]:
    """End a life: nodes are told to forget the resource, programs to stop; nothing for what is not live."""
    steps = _steps(state, facts.now)
    if state.is_live:
        _end_life(steps, "deleted", request)
    return steps.events, steps.state


def _end_life(steps: Steps[S], cause: str, request: str | None) -> None:
    if isinstance(steps.state, GmJob):
        stop_work(steps, steps.state.order, steps.state.serving)
    steps.add(e.ResourceDeleted, cause=cause, request=request)


def link_dataset(state: GmJob, place: Place, now: str) -> tuple[list[Event], GmJob]:
    """Tell a live job where its dataset lies now."""
    steps = Steps(state, now, evolve_job)
    if state.is_live:
        _link(steps, place)
    return steps.events, steps.state


def _link(steps: Steps[GmJob], place: Place) -> None:
    if place != (steps.state.home, steps.state.dataset_url):
        steps.add(e.DatasetLinked, node=place.node, url=place.url)


def receive_report(
    state: GmJob, node: str, report_id: str | None, content: JsonObject, facts: Facts
) -> tuple[list[Event], GmJob]:
    """Record what an LC reported of a job; it moves the job if it fits where the job stands."""
    steps = Steps(state, facts.now, evolve_job)
    report = Report.read(node, content)
    ignored = misfit(state, report)
    steps.add(e.ReportReceived, node=node, id=report_id, content=content, ignored=ignored)
    if ignored is None:
        move(steps, report, facts.token)
    return steps.events, steps.state


def receive_sample_count(
    state: GmDataset, node: str, report_id: str | None, content: JsonObject, now: str
) -> tuple[list[Event], GmDataset]:
    """Record how many records the LC of a dataset's node counted."""
    steps = Steps(state, now, evolve_dataset)
    ignored = None
    if not state.is_live:
        ignored = "deleted"
    elif node != state.node:
        ignored = "node"
    steps.add(e.ReportReceived, node=node, id=report_id, content=content, ignored=ignored)
    return steps.events, steps.state


def receive_duplicate(state: S, node: str, report_id: str | None, now: str) -> tuple[list[Event], S]:
    """Count a repeat; it changes nothing else."""
    steps = _steps(state, now)
    steps.add(e.DuplicateReceived, node=node, id=report_id)
    return steps.events, steps.state


def confirm_delivery(state: S, node: str, version: int, now: str) -> tuple[list[Event], S]:
    """A node shows that it has the message of `version`, or a later one."""
    steps = _steps(state, now)
    delivery = state.deliveries.get(node)
    if delivery is not None and not delivery.settled and version >= delivery.version:
        steps.add(e.DeliveryConfirmed, node=node, version=version)
    return steps.events, steps.state


def refuse_delivery(state: S, node: str, version: int, *, code: str, error: str, now: str) -> tuple[list[Event], S]:
    """A node refused the newest message to it."""
    steps = _steps(state, now)
    delivery = state.deliveries.get(node)
    if delivery is not None and not delivery.settled and version == delivery.version:
        steps.add(e.DeliveryRefused, node=node, version=version, code=code, error=error)
    return steps.events, steps.state


def _steps(state: S, now: str) -> Steps[S]:
    return Steps(state, now, _evolve)


def _evolve(state: S, event: Event) -> S:
    return evolve_job(state, event) if isinstance(state, GmJob) else evolve_dataset(state, event)  # type: ignore[return-value]
