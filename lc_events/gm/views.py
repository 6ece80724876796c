"""What operators see of a global manager's store, as JSON values made of the folds alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lc_events.errors import RefusedError
from lc_events.gm.dataset import GmDataset
from lc_events.gm.job import GmJob, Order
from lc_events.messages.json import Json, JsonObject, loads_object

__all__ = ["CONDITION_TITLES", "condition_rows", "dataset_view", "job_view", "waits_for"]

State = GmJob | GmDataset

CONDITION_TITLES = ("TIME", "STAGE", "TYPE", "WHAT")


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
        "waits_for": waits_for(job),
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


def waits_for(job: GmJob) -> str | None:
    """Whom a job waits for, in words; None for a deleted one."""
    if not job.is_live:
        return None
    if job.home is None:
        return f"dataset {job.namespace}/{job.dataset_name}, which was not applied yet"
    if job.type == "Waiting":
        delivery = job.deliveries.get(job.home)
        if delivery is not None and delivery.refusal is not None:
            return f"another manifest: node {job.home} refused this one: {delivery.refusal.error}"
        if delivery is not None and not delivery.settled:
            return f"the local controller of {job.home}, which has not shown yet that it knows"
        return f"the local controller of {job.home}"
    if job.order is not None and not job.order.answered:
        return f"the agent of {job.order.node}, which has not answered its work order yet"
    worker = "a worker" if job.order is None else job.order.worker
    return f"{worker} on {job.worker_nodes.get(str(job.stage), job.home)}"


def condition_rows(view: JsonObject) -> list[tuple[str, str, str, str]]:
    """The conditions of a job's view as lines of a table under CONDITION_TITLES."""
    conditions = view["conditions"]
    entries = [c for c in conditions if isinstance(c, dict)] if isinstance(conditions, list) else []
    return [(str(c["lastTransitionTime"]), str(c["stage"]), str(c["type"]), _what(c)) for c in entries]


def _what(entry: JsonObject) -> str:
    """What came with a condition: an error, the models made, or the data to work on."""
    data = entry.get("data")
    if not isinstance(data, str):
        return str(entry.get("message", ""))
    try:
        parts = loads_object(data)
    except RefusedError:
        return ""
    given, output = (parts.get(name) for name in ("input", "output"))
    if isinstance(output, dict):
        return _urls(output)
    return (str(given.get("dataURL", "")) or _urls(given)) if isinstance(given, dict) else ""


def _urls(part: JsonObject) -> str:
    models = part.get("models")
    named: Sequence[Json] = models if isinstance(models, list) else []
    return ", ".join(str(model.get("url")) for model in named if isinstance(model, dict))


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
    return [
        *messages,
        *({"what": what, "node": order.node, "id": order.id, "time": order.time} for what, order in orders),
    ]


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
