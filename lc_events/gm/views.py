"""What operators see of a global manager's store, as JSON values made of the folds alone."""

from __future__ import annotations

from collections.abc import Iterator

from lc_events.application.journal import Journal
from lc_events.errors import NotFoundError
from lc_events.gm.dataset import GmDataset
from lc_events.gm.events import ResourceApplied
from lc_events.gm.job import GmJob, Order
from lc_events.gm.ledger import State, fold_stream
from lc_events.messages.json import Json, JsonObject
from lc_events.messages.names import JOB_KIND, stream_id

__all__ = ["dataset_view", "gm_jobs", "gm_show", "is_gm_store", "job_view"]


def is_gm_store(journal: Journal) -> bool:
    """Whether a store is a global manager's, by the event that each of its streams begins with; an empty one is not."""
    rows = journal.rows.rows(limit=1)
    return bool(rows) and rows[0].name == ResourceApplied.__name__


def gm_jobs(journal: Journal) -> list[JsonObject]:
    """All jobs, deleted ones too, by namespace and name; each as `gm_show` gives it."""
    streams = [stream for stream in journal.rows.streams() if stream.split("/")[1] == JOB_KIND]
    return [_job_view_of(journal, stream) for stream in streams]


def gm_show(journal: Journal, namespace: str, name: str) -> JsonObject:
    """One job; NotFoundError if it was never applied."""
    return _job_view_of(journal, stream_id(namespace, JOB_KIND, name))


def _job_view_of(journal: Journal, stream: str) -> JsonObject:
    state = fold_stream(stream, journal.stream(stream))
    if not isinstance(state, GmJob) or not state.version:
        namespace, _, name = stream.split("/")
        raise NotFoundError(f"job {namespace}/{name} was never applied to this global manager")
    return job_view(state)


def job_view(job: GmJob) -> JsonObject:
    """A job's keys as in an LC's state as far as they mean the same, its conditions, and what is still unsettled."""
    trouble = job.trouble
    return {
        "namespace": job.namespace,
        "name": job.name,
        "node": job.home,
        "version": job.version,
        "generation": job.generation,
        "deleted": job.deleted,
        "uid": job.uid,
        "stage": job.stage,
        "type": job.type,
        "round": job.round,
        "dataset": job.dataset_name,
        "conditions": list(job.conditions),
        "conditions_count": job.conditions_count,
        "nodes": _nodes(job),
        "work": _orders(job),
        "unconfirmed": _unconfirmed(job),
        "last_error": _last_error(job) if trouble is None else _newer(trouble._asdict(), _last_error(job)),
        "counts": {"reports": job.reports, "duplicates": job.duplicates},
        "updated": job.updated,
    }


def dataset_view(dataset: GmDataset) -> JsonObject:
    """A dataset: where it lies, how many records its LC counted, who was told."""
    return {
        "namespace": dataset.namespace,
        "name": dataset.name,
        "node": dataset.node,
        "version": dataset.version,
        "generation": dataset.generation,
        "deleted": dataset.deleted,
        "url": dataset.url,
        "samples": dataset.samples,
        "nodes": _nodes(dataset),
        "unconfirmed": _unconfirmed(dataset),
        "last_error": _last_error(dataset),
        "updated": dataset.updated,
    }


def _nodes(state: State) -> JsonObject:
    """By node: the newest message to it, and whether it has it."""
    return {
        node: {
            "operation": delivery.operation,
            "version": delivery.version,
            "state": "refused" if delivery.refusal else "confirmed" if delivery.settled else "unconfirmed",
        }
        for node, delivery in state.deliveries.items()
    }


def _unconfirmed(state: State) -> list[Json]:
    """What is repeated: messages that no node has shown, orders that no worker has answered."""
    messages: list[Json] = [
        {"what": delivery.operation, "node": node, "version": delivery.version}
        for node, delivery in state.deliveries.items()
        if not delivery.settled
    ]
    orders = _open_orders(state) if isinstance(state, GmJob) else ()
    return [*messages, *({"what": what, "node": order.node, "id": order.id} for what, order in orders)]


def _open_orders(job: GmJob) -> Iterator[tuple[str, Order]]:
    if job.order is not None and not job.order.answered:
        yield "order", job.order
    yield from (("cancel", order) for order in job.cancelled)


def _orders(job: GmJob) -> list[Json]:
    """The programs that run or are to run."""
    orders = {order.id: order for order in (job.order, job.serving) if order is not None and not order.ended}
    return [
        {"id": o.id, "stage": o.stage, "node": o.node, "worker": o.worker, "answered": o.answered, "time": o.time}
        for o in orders.values()
    ]


def _last_error(state: State) -> JsonObject | None:
    """The newest refusal of a message by a node."""
    refusals: list[JsonObject] = [
        {"node": node, **delivery.refusal._asdict()}
        for node, delivery in state.deliveries.items()
        if delivery.refusal is not None
    ]
    return max(refusals, key=lambda refusal: str(refusal["time"]), default=None)


def _newer(first: JsonObject, second: JsonObject | None) -> JsonObject:
    return first if second is None or str(first["time"]) >= str(second["time"]) else second
