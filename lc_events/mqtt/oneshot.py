"""One question to a broker and its answer, for commands that come and go."""

from __future__ import annotations

import queue
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from lc_events.errors import BrokerError
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.packets import Publication

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lc_events.mqtt.packets import Received
    from lc_events.mqtt.settings import MqttSettings

__all__ = ["NOT_TOLD", "request", "retained", "send"]

NOT_TOLD = ("denied", "no_answer")
"""Codes of a BrokerError of a broker that is there, but has rules by which it does not answer."""

_QUIET_SECONDS = 0.3


def send(settings: MqttSettings, publication: Publication, *, timeout: float = 10.0) -> None:
    """Publish once, and return when the broker has it; BrokerError in words. `timeout` bounds each of the two."""
    with _client(settings, [], queue.Queue()) as client:
        client.wait_connected(timeout)
        client.publish_and_wait(publication, timeout)


def retained(
    settings: MqttSettings,
    *topic_filters: str,
    marker: str | None = None,
    quiet_seconds: float | None = None,
    timeout: float = 10.0,
) -> dict[str, bytes]:
    """Return the retained messages of some filters by topic, once none came for a while; BrokerError in words.

    MQTT has no end mark for them; `timeout` bounds connecting and collecting each. The client id is a throw-away one.
    With `marker`, a topic that we may hear and say, a message of our own is the mark: the broker sends it after them.
    Without it they are not all, and the code is `no_answer`, except where `quiet_seconds` are given: a broker may be
    silent for a while, as it writes its database.
    """
    found: dict[str, bytes] = {}
    arrived: queue.Queue[Received] = queue.Queue()
    filters = topic_filters if marker is None else (*topic_filters, marker)
    silence = _QUIET_SECONDS if quiet_seconds is None and marker is None else quiet_seconds
    token = secrets.token_hex(8).encode()
    with _client(settings, filters, arrived) as client:
        client.wait_connected(timeout)
        if marker is not None:
            client.publish(Publication(marker, token))
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            try:
                received = arrived.get(timeout=left if silence is None else min(silence, left))
            except queue.Empty:
                break
            client.ack(received)
            if received.topic == marker and received.payload == token:
                return found
            if received.retain and received.payload:
                found[received.topic] = received.payload
    if marker is not None and quiet_seconds is None:
        raise BrokerError(f"the broker did not say within {timeout:g} s what it retains", code="no_answer")
    return found


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
    with _client(settings, [answers], arrived) as client:
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


def _client(settings: MqttSettings, filters: Sequence[str], arrived: queue.Queue[Received]) -> MqttClient:
    return MqttClient(replace(settings, client_id=None), subscriptions=filters, on_message=arrived.put, clean=True)
