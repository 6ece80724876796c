"""A listener on the broker that keeps all it heard, in order; it can speak too."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from support.paho_clients import end


@dataclass(frozen=True)
class Tapped:
    """One message as the tap heard it; `order` counts from 0 over all its filters."""

    order: int
    topic: str
    payload: bytes
    retain: bool
    qos: int
    correlation: bytes | None
    response_topic: str | None

    @property
    def json(self) -> Any:
        """The payload, parsed."""
        return json.loads(self.payload)


class Tap:
    """Subscribes to `filters`; connected and subscribed once `start` or `with` returns.

    With `session_seconds` the broker keeps for it what it misses while they are apart; without, nothing.
    """

    def __init__(
        self,
        port: int,
        *filters: str,
        username: str | None = None,
        password: str | None = None,
        session_seconds: int = 0,
    ) -> None:
        self._port = port
        self._filters = filters or ("#",)
        self._changed = threading.Condition()
        self._messages: list[Tapped] = []
        self._subscribed = False
        self._session = Properties(PacketTypes.CONNECT)
        self._session.SessionExpiryInterval = session_seconds
        client_id = f"tap-{uuid.uuid4().hex}" if session_seconds else ""
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.username_pw_set(username, password) if username else None
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message

    def start(self) -> Self:
        """Connect and wait for the subscription.

        Mosquitto 2.0.11 does not write sessions to its database that began with a clean start, whatever their expiry.
        """
        is_clean = self._session.SessionExpiryInterval == 0
        self._client.connect("127.0.0.1", self._port, clean_start=is_clean, properties=self._session)
        self._client.loop_start()
        with self._changed:
            if not self._changed.wait_for(lambda: self._subscribed, 10):
                raise AssertionError("the tap could not subscribe")
        return self

    def stop(self) -> None:
        """Disconnect."""
        end(self._client)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The broker's port on 127.0.0.1."""
        return self._port

    @property
    def messages(self) -> list[Tapped]:
        """All messages so far, oldest first."""
        with self._changed:
            return list(self._messages)

    def of(self, topic: str) -> list[Tapped]:
        """The messages of one topic."""
        return [message for message in self.messages if message.topic == topic]

    def wait_for(self, predicate: Callable[[Tapped], object], timeout: float = 10.0) -> Tapped:
        """The first message, earlier ones included, for which `predicate` is true."""
        return self.wait_for_count(1, predicate, timeout)[0]

    def wait_for_topic(self, topic: str, timeout: float = 10.0) -> Tapped:
        """The first message of that topic."""
        return self.wait_for(lambda message: message.topic == topic, timeout)

    def wait_for_count(
        self, count: int, predicate: Callable[[Tapped], object] = lambda _: True, timeout: float = 10.0
    ) -> list[Tapped]:
        """The first messages for which `predicate` is true, as soon as there are `count`."""
        deadline = time.monotonic() + timeout
        seen = 0
        found: list[Tapped] = []
        with self._changed:
            while True:
                found += [message for message in self._messages[seen:] if predicate(message)]
                seen = len(self._messages)
                if len(found) >= count:
                    return found
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    heard = "\n".join(f"{m.topic} {m.payload[:200]!r}" for m in self._messages[-20:])
                    raise AssertionError(f"{len(found)} of {count} messages within {timeout} s; last heard:\n{heard}")

    def publish(
        self,
        topic: str,
        payload: bytes | str | dict[str, Any] | list[Any],
        *,
        retain: bool = False,
        response_topic: str | None = None,
        correlation: bytes | None = None,
    ) -> None:
        """Publish with QoS 1 and wait for the broker's PUBACK."""
        self.publish_all([(topic, payload)], retain=retain, response_topic=response_topic, correlation=correlation)

    def publish_all(
        self,
        messages: Iterable[tuple[str, bytes | str | dict[str, Any] | list[Any]]],
        *,
        retain: bool = False,
        response_topic: str | None = None,
        correlation: bytes | None = None,
    ) -> None:
        """Publish many in order, pipelined, and wait for all PUBACKs."""
        properties = Properties(PacketTypes.PUBLISH)
        if response_topic is not None:
            properties.ResponseTopic = response_topic
        if correlation is not None:
            properties.CorrelationData = correlation
        infos = []
        for topic, payload in messages:
            text = json.dumps(payload) if isinstance(payload, dict | list) else payload
            infos.append(self._client.publish(topic, text, qos=1, retain=retain, properties=properties))
        for info in infos:
            info.wait_for_publish(10)
            assert info.is_published()

    def _on_connect(self, client: paho.Client, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any) -> None:
        if not reason.is_failure:
            client.subscribe([(each, 1) for each in self._filters])

    def _on_subscribe(self, *_: object) -> None:
        with self._changed:
            self._subscribed = True
            self._changed.notify_all()

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        properties = message.properties
        with self._changed:
            self._messages.append(
                Tapped(
                    order=len(self._messages),
                    topic=message.topic,
                    payload=bytes(message.payload),
                    retain=message.retain,
                    qos=message.qos,
                    correlation=getattr(properties, "CorrelationData", None),
                    response_topic=getattr(properties, "ResponseTopic", None),
                )
            )
            self._changed.notify_all()
