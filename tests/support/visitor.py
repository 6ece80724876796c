"""A client of MQTT 3.1.1 or 5 that says what the broker answered, reason by reason."""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass, field
from typing import Any, Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from support.paho_clients import end

MQTT_3_1_1 = MQTTProtocolVersion.MQTTv311
MQTT_5 = MQTTProtocolVersion.MQTTv5

_DEADLINE = 10.0


class TurnedAwayError(Exception):
    """The broker did not let us in."""


@dataclass
class Heard:
    """What came in, in order."""

    topics: list[str] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)


class Visitor:
    """Connects, by default with a clean session; TurnedAwayError if the broker refuses or hangs up."""

    def __init__(
        self,
        port: int,
        protocol: MQTTProtocolVersion = MQTT_5,
        *,
        username: str | None = None,
        password: str | None = None,
        client_id: str = "",
        clean: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.heard = Heard()
        self._port = port
        self._changed = threading.Condition()
        self._connected: bool | None = None
        self._answers: dict[int, list[ReasonCode]] = {}
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=None if protocol == MQTT_5 else clean,
            protocol=protocol,
            reconnect_on_failure=False,
        )
        if username is not None:
            self._client.username_pw_set(username, password)
        if tls is not None:
            self._client.tls_set_context(tls)
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = lambda *_: self._note_connected(connected=False)
        self._client.on_disconnect = lambda *_: self._note_connected(connected=False)
        self._client.on_message = self._on_message
        self._client.on_publish = lambda _c, _d, mid, reason, _p: self._note_answer(mid, [reason])
        self._client.on_subscribe = lambda _c, _d, mid, reasons, _p: self._note_answer(mid, reasons)

    def __enter__(self) -> Self:
        try:
            self._client.connect("127.0.0.1", self._port)
        except OSError as error:
            raise TurnedAwayError(str(error)) from None
        self._client.loop_start()
        with self._changed:
            assert self._changed.wait_for(lambda: self._connected is not None, _DEADLINE), "no answer to CONNECT"
        if not self._connected:
            end(self._client)
            raise TurnedAwayError("the broker said no")
        return self

    def __exit__(self, *_: object) -> None:
        end(self._client)

    def publish(self, topic: str, payload: bytes | str = b"x", **properties: Any) -> int:
        """Publish with QoS 1 and return the reason code of the PUBACK, 0 in 3.1.1; `properties` as paho names them."""
        sent = None
        if properties:
            sent = Properties(PacketTypes.PUBLISH)
            for name, value in properties.items():
                setattr(sent, name, value)
        info = self._client.publish(topic, payload, qos=1, properties=sent)
        return self._answer(info.mid)[0].value

    def subscribe(self, *filters: str) -> list[int]:
        """Subscribe and return the reason code of each filter; 128 and more is a refusal."""
        result, mid = self._client.subscribe([(each, 1) for each in filters])
        assert result == paho.MQTT_ERR_SUCCESS
        assert mid is not None
        return [reason.value for reason in self._answer(mid)]

    def wait_for(self, topic: str) -> None:
        """Wait until a message of that topic came."""
        with self._changed:
            came = self._changed.wait_for(lambda: topic in self.heard.topics, _DEADLINE)
            assert came, f"{topic} did not come; heard {self.heard.topics}"

    def _answer(self, mid: int) -> list[ReasonCode]:
        with self._changed:
            assert self._changed.wait_for(lambda: mid in self._answers, _DEADLINE), "no acknowledgement"
            return self._answers[mid]

    def _on_connect(self, _client: paho.Client, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any) -> None:
        self._note_connected(connected=not reason.is_failure)

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        with self._changed:
            self.heard.topics.append(message.topic)
            self.heard.payloads.append(bytes(message.payload))
            self._changed.notify_all()

    def _note_connected(self, *, connected: bool) -> None:
        with self._changed:
            self._connected = connected
            self._changed.notify_all()

    def _note_answer(self, mid: int, reasons: list[ReasonCode]) -> None:
        with self._changed:
            self._answers[mid] = reasons
            self._changed.notify_all()
