"""How a job moves through its stages, as under Sedna's global manager (lifelonglearningjob.go, transitJobState)."""

from __future__ import annotations

from typing import TypeVar

from lc_events.domain.steps import Steps
from lc_events.gm import events as e
from lc_events.gm.conditions import NEXT_STAGE, strictly_after
from lc_events.gm.job import GmJob, Order
from lc_events.gm.orders import work_order
from lc_events.gm.report import Report
from lc_events.gm.resource import ResourceState
from lc_events.gm.template import stage_template
from lc_events.messages.json import JsonObject

__all__ = ["append", "misfit", "move", "stop_work"]

S = TypeVar("S", bound=ResourceState)

_AT_WORK = ("Starting", "Running")
_NO_MODEL = "the worker reported no model"
_TOO_LARGE = "the worker's models are too many to keep"


def append(
    steps: Steps[GmJob],
    stage: str,
    type_: str,
    *,
    data: JsonObject | None = None,
    message: str | None = None,
    node: str | None = None,
) -> None:
    """Append a condition, later than the one before."""
    at = strictly_after(steps.state.last_transition, steps.now)
    moved_at = None if at == steps.now else at
    steps.add(e.ConditionAppended, stage=stage, type=type_, at=moved_at, data=data, message=message, node=node)


def misfit(job: GmJob, report: Report) -> str | None:
    """Why a report does not move the job, in a word; None if it does."""
    if not job.is_live:
        return "deleted"
    if not report.stage or report.stage != job.stage:
        return "stage"
    return _worker_misfit(job, report) if report.is_from_worker else _controller_misfit(job, report)


def _controller_misfit(job: GmJob, report: Report) -> str | None:
    """An LC's own report answers a waiting condition, and comes from where the dataset lies."""
    if job.type != "Waiting":
        return "type"
    if report.node != job.home:
        return "node"
    if report.status == "ready":
        needed = ("models",) if report.stage == "Deploy" else ("dataURL", "outputDir")
        return None if report.input is not None and all(report.input.get(name) for name in needed) else "input"
    return None if report.stage == "Deploy" and report.status in ("completed", "failed") else "status"


def _worker_misfit(job: GmJob, report: Report) -> str | None:
    """A worker's report is of the stage's worker, and of its present order, if it names one."""
    if report.status not in ("running", "completed", "failed"):
        return "status"
    if job.type not in _AT_WORK or (report.status == "running" and job.type == "Running"):
        return "type"
    if report.node != job.worker_nodes.get(report.stage):
        return "node"
    if report.order is not None and (job.order is None or report.order != job.order.id):
        return "order"
    return None


def move(steps: Steps[GmJob], report: Report, token: str) -> None:
    """Move the job by a report that fits."""
    stage = report.stage
    match report.status:
        case "ready":
            append(steps, stage, "Ready", data={"input": report.input})
            _start(steps, stage, report.input or {}, token)
        case "running":
            append(steps, stage, "Running")
            if stage == "Deploy":  # an inference program stays: that it runs is all that deploying it can achieve
                _complete(steps, stage)
        case "completed" if not report.is_from_worker or stage == "Deploy":
            _complete(steps, stage)
        case "completed":
            _complete_with_models(steps, report)
        case "failed":
            error = report.error if report.is_from_worker else "the local controller could not deploy the model"
            _fail(steps, stage, error)


def _start(steps: Steps[GmJob], stage: str, given: JsonObject, token: str) -> None:
    """Have the stage's program run; without a container somebody else runs it, and nothing is there to serve."""
    job = steps.state
    template = stage_template(job.spec, stage)
    node = template.node or job.home
    if stage == "Deploy" and template.container is None:
        stop_work(steps, job.serving)
        _complete(steps, stage)
        return
    append(steps, stage, "Starting", node=node)
    if template.container is None or node is None:
        return
    if stage == "Deploy" and job.serving is not None and job.serving.node != node:
        stop_work(steps, job.serving)  # on the same node the agent itself replaces the program
    steps.add(
        e.WorkOrdered,
        id=f"{stage.lower()}-{token}",
        node=node,
        worker=f"{stage.lower()}-worker-{token[:8]}",
        order=work_order(steps.state, template.container, stage, given),
    )


def stop_work(steps: Steps[S], *orders: Order | None) -> None:
    """Cancel what still runs, each order once."""
    for order in {order.id: order for order in orders if order is not None and not order.ended}.values():
        steps.add(e.WorkCancelled, id=order.id)


def _complete_with_models(steps: Steps[GmJob], report: Report) -> None:
    """Without a model the next stage would wait for ever, so a worker that made none has failed."""
    models = report.models
    if models:
        _complete(steps, report.stage, {"output": {"models": models}})
    else:
        _fail(steps, report.stage, _TOO_LARGE if models is None else _NO_MODEL)


def _complete(steps: Steps[GmJob], stage: str, data: JsonObject | None = None) -> None:
    append(steps, stage, "Completed", data=data)
    append(steps, NEXT_STAGE[stage], "Waiting")


def _fail(steps: Steps[GmJob], stage: str, message: str) -> None:
    """A failed stage goes back to Train/Waiting."""
    append(steps, stage, "Failed", message=message)
    append(steps, "Train", "Waiting")
