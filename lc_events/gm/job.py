"""Where a job stands as the global manager sees it, and the fold that alone makes such a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lc_events.domain.events import Event
from lc_events.gm import events as e
from lc_events.gm.conditions import condition, kept
from lc_events.gm.report import Report
from lc_events.gm.resource import ResourceState, apply_to_resource
from lc_events.messages.json import Json, JsonObject

__all__ = ["GmJob", "Order", "Trouble", "evolve_job", "fold_job"]


class Order(NamedTuple):
    """A work order: `answered` once a worker reported on it, `ended` once its program had."""

    id: str
    time: str
    node: str
    worker: str
    stage: str
    body: JsonObject
    answered: bool = False
    ended: bool = False


class Trouble(NamedTuple):
    """The newest failure of a stage or of a program."""

    stage: str
    error: str
    time: str


@dataclass(slots=True)
class GmJob(ResourceState):
    """Where a job stands. `home` is the node of its dataset; `serving` the newest inference order."""

    home: str | None = None
    dataset_url: str | None = None
    conditions: tuple[JsonObject, ...] = ()
    conditions_count: int = 0
    last_transition: str | None = None
    worker_nodes: Mapping[str, str] = field(default_factory=dict)
    round: int = 0
    trained: bool = False
    order: Order | None = None
    serving: Order | None = None
    cancelled: tuple[Order, ...] = ()
    trouble: Trouble | None = None

    @property
    def stage(self) -> str | None:
        """The stage of the last condition."""
        return str(self.conditions[-1]["stage"]) if self.conditions else None

    @property
    def type(self) -> str | None:
        """The type of the last condition."""
        return str(self.conditions[-1]["type"]) if self.conditions else None

    @property
    def dataset_name(self) -> str | None:
        """The dataset that the spec asks for, in the job's namespace."""
        dataset = self.spec.get("dataset")
        return str(dataset["name"]) if isinstance(dataset, dict) else None

    @property
    def output_dir(self) -> str:
        """The job's output URL without a trailing slash."""
        return str(self.spec.get("outputDir", "")).rstrip("/")

    @property
    def residents(self) -> set[str | None]:
        """Nodes that keep the job when a stage ends: the dataset's, and the one where its model serves."""
        serving = self.serving
        return {self.home, serving.node if serving is not None and not serving.ended else None}

    def own_annotations(self) -> dict[str, Json]:
        """`sedna.io/STAGE`: where the stage's worker runs, as Sedna's global manager notes it."""
        return {f"sedna.io/{stage}": node for stage, node in self.worker_nodes.items()}

    def status(self) -> JsonObject:
        """The conditions that are kept."""
        return {"conditions": list(self.conditions)}


def evolve_job(state: GmJob, event: Event) -> GmJob:
    """The state after one more event; the state before is left as it was."""
    after = state.copy()
    _apply(after, event)
    return after


def fold_job(stream: str, events: Iterable[Event]) -> GmJob:
    """The state after all `events`, in version order."""
    state = GmJob(stream)
    for event in events:
        _apply(state, event)
    return state


def _apply(job: GmJob, event: Event) -> None:
    job.version, job.updated = event.originator_version, event.time
    match event:
        case e.DatasetLinked():
            _dataset_linked(job, event)
        case e.ConditionAppended():
            _condition_appended(job, event)
        case e.WorkOrdered():
            _work_ordered(job, event)
        case e.WorkCancelled():
            _work_cancelled(job, event)
        case _:
            if isinstance(event, e.ResourceApplied) and event.generation is not None:
                _begin_life(job)
            apply_to_resource(job, event)
            if isinstance(event, e.ReportReceived):
                _report_received(job, event)


def _begin_life(job: GmJob) -> None:
    """Forget the life before, but what is still to be sent, and when it last moved: times never go back."""
    fresh = GmJob(job.stream)
    for name in (
        *("metadata", "spec", "spec_generation", "home", "dataset_url", "conditions", "conditions_count"),
        *("worker_nodes", "round", "trained", "order", "serving", "trouble"),
    ):
        setattr(job, name, getattr(fresh, name))


def _dataset_linked(job: GmJob, event: e.DatasetLinked) -> None:
    before, job.home, job.dataset_url = job.home, event.node, event.url
    if before == job.home:
        return
    if job.conditions:
        job.send(job.home)
    _release(job, before)


def _condition_appended(job: GmJob, event: e.ConditionAppended) -> None:
    at = event.at or event.time
    job.conditions = kept((*job.conditions, condition(event.stage, event.type, at, event.data, event.message)))
    job.conditions_count += 1
    job.last_transition = at
    match event.type:
        case "Waiting":
            job.send(job.home)
        case "Ready":
            job.round = _round_of(event.data, job.round)
        case "Starting":
            if event.node is not None:
                job.worker_nodes = {**job.worker_nodes, event.stage: event.node}
            job.send(event.node)
        case "Running":
            job.send(job.worker_nodes.get(event.stage))
        case "Completed" | "Failed":
            job.order = None
            job.trained = job.trained or (event.stage, event.type) == ("Train", "Completed")
            if event.type == "Failed":
                job.trouble = Trouble(event.stage, event.message or "failed", at)
            _release(job, job.worker_nodes.get(event.stage))


def _round_of(data: JsonObject | None, before: int) -> int:
    """The round in `OUTPUT/train/ROUND`; the LC counts them."""
    given = (data or {}).get("input")
    last = str(given.get("outputDir", "")).rstrip("/").rpartition("/")[2] if isinstance(given, dict) else ""
    return int(last) if last.isascii() and last.isdecimal() and len(last) < 10 else before


def _release(job: GmJob, node: str | None) -> None:
    """Take the job back from a node that has no more part in it."""
    at_work = None if job.order is None else job.order.node
    if node not in job.residents and node != at_work:
        job.take_back(node)


def _work_ordered(job: GmJob, event: e.WorkOrdered) -> None:
    stage = str(event.order["stage"])
    order = Order(event.id, event.time, event.node, event.worker, stage, event.order)
    job.order = order
    if stage == "Deploy":
        before, job.serving = job.serving, order
        _release(job, None if before is None else before.node)


def _work_cancelled(job: GmJob, event: e.WorkCancelled) -> None:
    stopped = next((o for o in (job.order, job.serving) if o is not None and o.id == event.id), None)
    if stopped is None:
        return
    job.cancelled = (*job.cancelled, stopped._replace(time=event.time))
    if job.order is not None and job.order.id == event.id:
        job.order = None
    if job.serving is not None and job.serving.id == event.id:
        job.serving = None
        _release(job, stopped.node)


def _report_received(job: GmJob, event: e.ReportReceived) -> None:
    report = Report.read(event.node, event.content)
    if not report.is_from_worker:
        return
    if report.status == "failed" and report.order not in {order.id for order in job.cancelled}:
        job.trouble = Trouble(report.stage, report.error, event.time)
    fits = event.ignored is None
    job.order = _answered(job.order, report, fits=fits)
    job.serving = _answered(job.serving, report, fits=fits)
    if report.is_final:
        job.cancelled = tuple(order for order in job.cancelled if order.id != report.order)


def _answered(order: Order | None, report: Report, *, fits: bool) -> Order | None:
    """The order after a report that names it, or that names none but moved the order's stage."""
    if order is None or (
        report.order != order.id and not (report.order is None and fits and report.stage == order.stage)
    ):
        return order
    return order._replace(answered=True, ended=order.ended or report.is_final)
