"""What the global manager says, as topics and payloads: resources, confirmations, work orders."""

from __future__ import annotations

from collections.abc import Sequence

from lc_events.gm.deliveries import Delivery
from lc_events.gm.job import Order
from lc_events.messages.json import dumps
from lc_events.messages.names import Stream, parts_of
from lc_events.messages.secrets import Secrets, restore
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.topics import Topics

__all__ = ["acknowledgement", "cancel_order", "resource_message", "work_order_message"]


def resource_message(
    topics: Topics, stream: Stream, delivery: Delivery, *, node: str, message_id: str, secrets: Secrets
) -> Publication:
    """Sedna's message about a resource, with an id; the secrets are put back, for an LC needs them."""
    namespace, kind, name = parts_of(stream)
    header = {
        "namespace": namespace,
        "resourceKind": kind,
        "resourceName": name,
        "operation": delivery.operation,
    }
    content = restore(delivery.body, secrets)
    payload = dumps({"id": message_id, "header": header, "content": content})
    return Publication(topics.down(node, kind, namespace, name), payload)


def acknowledgement(topics: Topics, node: str, ids: Sequence[str]) -> Publication:
    """These upstream ids are on disk."""
    return Publication(topics.down_ack(node), dumps({"ids": list(ids)}))


def work_order_message(topics: Topics, order: Order) -> Publication:
    """A work order for the agent of a node."""
    return Publication(topics.work(order.node, order.worker), dumps({"id": order.id, **order.body}))


def cancel_order(topics: Topics, order: Order) -> Publication:
    """Stop what an order started."""
    return Publication(topics.work(order.node, order.worker), dumps({"id": order.id, "cancel": True}))
