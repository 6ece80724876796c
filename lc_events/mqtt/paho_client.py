"""The paho client as we use it: it only notes what happened, in order, for the connection that owns it."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, NamedTuple

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from lc_events.mqtt.buffered import BufferedClient
from lc_events.mqtt.reasons import Failure, connection_failed

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from paho.mqtt.client import ConnectFlags
    from paho.mqtt.reasoncodes import ReasonCode

    from lc_events.mqtt.packets import Publication

__all__ = [
    "MQTT_3_1_1",
    "MQTT_5",
    "Connack",
    "Disconnect",
    "Event",
    "Puback",
    "SocketTrouble",
    "Suback",
    "connect_properties",
    "noting_client",
    "publish_properties",
    "with_qos_1",
]

MQTT_5 = MQTTProtocolVersion.MQTTv5
MQTT_3_1_1 = MQTTProtocolVersion.MQTTv311


class Connack(NamedTuple):
    """The broker's answer to CONNECT."""

    flags: ConnectFlags
    reason: ReasonCode
    properties: Properties | None


class Suback(NamedTuple):
    """The broker's answer to SUBSCRIBE, a reason for each filter in its order."""

    reasons: list[ReasonCode]


class Puback(NamedTuple):
    """A publication was confirmed, denied, or with QoS 0 written to the socket."""

    mid: int
    reason: ReasonCode


class Disconnect(NamedTuple):
    """The broker said goodbye (MQTT 5)."""

    reason: ReasonCode


Event = paho.MQTTMessage | Connack | Suback | Puback | Disconnect


class SocketTrouble(logging.Handler):
    """Keeps the error of paho's socket, which paho only logs: a TLS alert says there why the broker hung up."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.failure: Failure | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take the error out of the log record."""
        error = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(error, OSError):
            self.failure = connection_failed(error)


def noting_client(
    events: deque[Event],
    trouble: SocketTrouble,
    *,
    protocol: MQTTProtocolVersion,
    client_id: str,
    clean: bool,
    connect_timeout_seconds: float,
) -> BufferedClient:
    """A client whose callbacks append to `events` and do nothing else: paho calls them with its own locks held.

    It refers to nothing of ours but `events` and `trouble`, so that it goes, sockets and all, with its owner. Its loop
    must be run by one thread; publishing and acknowledging may be done by any.
    """
    client = BufferedClient(
        CallbackAPIVersion.VERSION2,
        client_id=client_id,
        clean_session=None if protocol is MQTT_5 else clean,
        protocol=protocol,
        manual_ack=True,
        reconnect_on_failure=False,
    )
    client.connect_timeout = connect_timeout_seconds
    client.max_inflight_messages = 0  # no second window: paho's does not know the broker's receive maximum
    logger = logging.Logger("paho", logging.ERROR)  # noqa: LOG001 (one for each connection, outside the tree)
    logger.addHandler(trouble)
    client.enable_logger(logger)
    client.on_connect = lambda _c, _u, flags, reason, properties: events.append(Connack(flags, reason, properties))
    client.on_subscribe = lambda _c, _u, _mid, reasons, _p: events.append(Suback(reasons))
    client.on_publish = lambda _c, _u, mid, reason, _p: events.append(Puback(mid, reason))
    client.on_message = lambda _c, _u, message: events.append(message)
    client.on_disconnect = lambda _c, _u, flags, reason, _p: (
        events.append(Disconnect(reason)) if flags.is_disconnect_packet_from_server else None
    )
    client.on_socket_open = lambda _c, _u, sock: _no_delay(sock)
    # with this callback set, paho writes on the thread of its loop only, never on the one that publishes
    client.on_socket_register_write = lambda *_: None
    return client


def connect_properties(session_expiry_seconds: int, receive_maximum: int) -> Properties:
    """Properties of CONNECT; without an expiry a session ends with its connection, even if it is not a clean one."""
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = session_expiry_seconds
    properties.ReceiveMaximum = receive_maximum
    return properties


def publish_properties(publication: Publication) -> Properties | None:
    """Properties of PUBLISH, None if there are none to send."""
    if publication.correlation is None and publication.response_topic is None:
        return None
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if publication.correlation is not None:
        properties.CorrelationData = publication.correlation
    if publication.response_topic is not None:
        properties.ResponseTopic = publication.response_topic
    return properties


def with_qos_1(
    filters: Sequence[str], protocol: MQTTProtocolVersion
) -> list[tuple[str, int]] | list[tuple[str, SubscribeOptions]]:
    """Topic filters as paho wants them; retained messages come anew with each subscription.

    In MQTT 5 one that is retained while we are connected says so too, as over a bridge (section 3.8.3.1).
    """
    if protocol is MQTT_5:
        return [(each, SubscribeOptions(qos=1, retainAsPublished=True)) for each in filters]
    return [(each, 1) for each in filters]


def _no_delay(sock: object) -> None:
    """Without it a PUBACK followed by a PUBLISH waits for a delayed ACK: 20 ms instead of 3."""
    if isinstance(sock, socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
