"""One question to a broker and its answer, for commands that come and go."""

from __future__ import annotations

import queue
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lc_events.errors import BrokerError
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.packets import Connected, Publication, Received

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lc_events.mqtt.settings import MqttSettings

__all__ = ["WITHHELD", "request", "retained", "send"]

WITHHELD = ("denied", "no_answer")
"""Codes of a BrokerError of a broker that is there, but has rules by which it does not answer."""


def send(settings: MqttSettings, publication: Publication, *, timeout: float = 10.0) -> None:
    """Publish once, and return when the broker has it; BrokerError in words. `timeout` bounds each of the two."""
    with _client(settings, [], lambda _: None) as client:
        client.wait_connected(timeout)
        client.publish_and_wait(publication, timeout)


def retained(
    settings: MqttSettings,
    *topic_filters: str,
    marker: str,
    quiet_seconds: float | None = None,
    timeout: float = 10.0,
) -> dict[str, bytes]:
    """Return the retained messages of some filters by topic, under a throw-away client id; BrokerError in words.

    MQTT has no end mark for them, so a message of our own on `marker` is it: the broker sends it after them. A
    connection that breaks is replaced, and all is said again. With `quiet_seconds`, for brokers that may deny us the
    marker, the silence of so long ends them too. Without, where the marker does not come, they may not be all: the code
    is `no_answer` if one connection stood all the time. `timeout` seconds bound connecting and collecting each.
    """
    found: dict[str, bytes] = {}
    arrived: queue.Queue[Received | Connected] = queue.Queue()
    end = Publication(marker, secrets.token_hex(8).encode())
    with _client(settings, (*topic_filters, marker), arrived.put, on_connected=arrived.put) as client:
        client.wait_connected(timeout)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            try:
                arrival = arrived.get(timeout=left if quiet_seconds is None else min(quiet_seconds, left))
            except queue.Empty:
                break
            if isinstance(arrival, Connected):
                found.clear()
                client.wait_connected(left)
                with suppress(BrokerError):  # gone again: the next connection has a marker of its own
                    client.publish(end, connection=arrival.connection)
                continue
            client.ack(arrival)
            if arrival.topic == marker and arrival.payload == end.payload:
                return found
            if arrival.retain and arrival.payload:
                found[arrival.topic] = arrival.payload
        client.wait_connected(0)
        is_interrupted = client.connection > 1
    if quiet_seconds is not None:
        return found
    if is_interrupted:
        raise BrokerError(f"connections to {settings.display_url} broke before it had said what it retains")
    raise BrokerError(f"the broker did not say within {timeout:g} s what it retains", code="no_answer")


def request(
    settings: MqttSettings,
    publication: Publication,
    answers: str,
    *,
    accepts: Callable[[Received], bool] = lambda _: True,
    timeout: float = 10.0,
) -> Received:
    """Publish, and return the first message on the filter `answers` that `accepts`; BrokerError if none comes in time.

    `timeout` seconds bound connecting and waiting each. Retained messages are no answers.
    """
    arrived: queue.Queue[Received] = queue.Queue()
    with _client(settings, [answers], arrived.put) as client:
        client.wait_connected(timeout)
        deadline = time.monotonic() + timeout
        client.publish_and_wait(publication, timeout)
        while True:
            try:
                received = arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise BrokerError(f"no answer on {answers} within {timeout:g} s", code="no_answer") from None
            client.ack(received)
            if not received.retain and accepts(received):
                return received


def _client(
    settings: MqttSettings,
    filters: Sequence[str],
    on_message: Callable[[Received], None],
    on_connected: Callable[[Connected], None] | None = None,
) -> MqttClient:
    """One with a throw-away client id."""
    return MqttClient(
        replace(settings, client_id=None),
        subscriptions=filters,
        on_message=on_message,
        on_connected=on_connected,
        clean=True,
        log_failures=False,
    )
