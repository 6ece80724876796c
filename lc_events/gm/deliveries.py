"""What each node was sent of a resource: only the newest message counts, until the node shows that it has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from lc_events.messages.json import JsonObject

__all__ = ["Deliveries", "Delivery", "Refusal", "confirm", "holders", "refuse", "send", "take_back"]


class Refusal(NamedTuple):
    """Why a local controller did not take a message."""

    code: str
    error: str
    time: str


class Delivery(NamedTuple):
    """The newest message to a node, caused by the event at `version`; `body` is the resource without its secrets."""

    version: int
    operation: Literal["insert", "delete"]
    body: JsonObject
    settled: bool = False
    refusal: Refusal | None = None


Deliveries = Mapping[str, Delivery]
"""By node; a value that is never written to."""


def send(deliveries: Deliveries, node: str | None, version: int, body: JsonObject) -> Deliveries:
    """Have the resource inserted at a node, or replaced there."""
    return deliveries if node is None else {**deliveries, node: Delivery(version, "insert", body)}


def take_back(deliveries: Deliveries, node: str | None, version: int, body: JsonObject) -> Deliveries:
    """Have the resource deleted at a node that was given it."""
    if node is None or node not in holders(deliveries):
        return deliveries
    return {**deliveries, node: Delivery(version, "delete", body)}


def holders(deliveries: Deliveries) -> list[str]:
    """The nodes that have the resource, or will have it soon."""
    return [node for node, delivery in deliveries.items() if delivery.operation == "insert"]


def confirm(deliveries: Deliveries, node: str, version: int) -> Deliveries:
    """A node shows the message of `version`, or of a later one."""
    delivery = deliveries.get(node)
    if delivery is None or delivery.settled or version < delivery.version:
        return deliveries
    return {**deliveries, node: delivery._replace(settled=True)}


def refuse(deliveries: Deliveries, node: str, version: int, refusal: Refusal) -> Deliveries:
    """A node refused the message of `version`; it is not sent again."""
    delivery = deliveries.get(node)
    if delivery is None or version != delivery.version:
        return deliveries
    return {**deliveries, node: delivery._replace(settled=True, refusal=refusal)}
