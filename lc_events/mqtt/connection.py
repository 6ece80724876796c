"""One connection to a broker, from CONNECT to its end; nothing of it is carried over into the next one."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTErrorCode

from lc_events.errors import BrokerError, UsageError
from lc_events.mqtt.acknowledgements import Acknowledgements
from lc_events.mqtt.buffered import NetworkLoop
from lc_events.mqtt.packets import DISCONNECTED, Connected, Publication, Received
from lc_events.mqtt.paho_client import (
    MQTT_5,
    Connack,
    Event,
    Puback,
    SocketTrouble,
    Suback,
    connect_properties,
    noting_client,
    publish_properties,
    with_qos_1,
)
from lc_events.mqtt.reasons import Failure, connect_refused, connection_failed, disconnected_by_broker, refused
from lc_events.mqtt.tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from paho.mqtt.enums import MQTTProtocolVersion

    from lc_events.mqtt.settings import MqttSettings

__all__ = ["Connection", "ConnectionOptions", "Ended", "Listener"]

_log = logging.getLogger("lc_events.mqtt")

_UNSUPPORTED_PROTOCOL = 0x84
_SELECT_SECONDS = 1.0
_HEADER_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """What every connection of a client has in common; `window` publications are sent before a PUBACK is awaited."""

    subscriptions: tuple[str, ...]
    clean: bool
    session_expiry_seconds: int
    receive_maximum: int
    keepalive_seconds: int
    connect_timeout_seconds: float
    window: int
    max_waiting: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a connection ended: `failure` None if we wanted it; `older_protocol` if the broker may know only 3.1.1."""

    connected: bool
    failure: Failure | None
    older_protocol: bool


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears of a connection: called on the thread that runs it, outside all locks, so it may publish and wait.

    `connected` when the broker has accepted us and SUBSCRIBE is on its way; `subscribed` with the filters that it
    denied and why; `received` returns False to leave a message unacknowledged; `published` with a ticket, an error in
    words, and the reason code if it is the broker's.
    """

    connected: Callable[[Connection, Connected], None]
    subscribed: Callable[[dict[str, str]], None]
    received: Callable[[Received], bool]
    published: Callable[[int, str | None, int | None], None]


class Connection:
    """Connection `number` of a client: `run` belongs to the client's thread, the rest may be called from any.

    A fresh paho client each time: one that reconnects sends its old QoS 1 messages again by itself, without a word,
    keeps them in memory for as long as the broker is away, and lets an old acknowledgement confirm a new message.
    """

    def __init__(
        self,
        settings: MqttSettings,
        options: ConnectionOptions,
        *,
        number: int,
        protocol: MQTTProtocolVersion,
        client_id: str,
        will: Publication | None,
    ) -> None:
        self.number = number
        self._settings = settings
        self._options = options
        self._protocol = protocol
        self._events: deque[Event] = deque()
        self._trouble = SocketTrouble()
        self._paho = noting_client(
            self._events,
            self._trouble,
            protocol=protocol,
            client_id=client_id,
            clean=options.clean,
            connect_timeout_seconds=options.connect_timeout_seconds,
        )
        if settings.username is not None:
            self._paho.username_pw_set(settings.username, settings.password)
        if will is not None:
            self._paho.will_set(will.topic, will.payload, will.qos, will.retain)
        self._network: NetworkLoop
        self._network_thread: int | None = None
        self._lock = threading.Lock()
        self._open = False
        self._leaving = False
        self._failure: Failure | None = None
        self._older_protocol = False
        self._window = options.window
        self._largest_packet: int | None = None
        self._in_flight: dict[int, int] = {}
        self._waiting: deque[tuple[int, Publication]] = deque()
        self._acknowledgements = Acknowledgements()
        self._deliveries = 0

    def run(self, listener: Listener) -> Ended:
        """Connect and serve the connection until it ends; whatever is unconfirmed then is reported as such."""
        connected = False
        self._network = NetworkLoop(self._paho)
        self._network_thread = threading.get_ident()
        try:
            connected = self._connect() and self._serve(listener)
        finally:
            self._close(listener)
        failure = None if self._leaving else self._failure or self._trouble.failure or _hung_up(connected)
        return Ended(connected, failure, self._older_protocol)

    def publish(self, ticket: int, publication: Publication) -> None:
        """Send, or queue within bounds until the window has room; BrokerError says why neither is possible."""
        size = len(publication.payload)
        if self._largest_packet is not None and size + _HEADER_BYTES > self._largest_packet:
            raise BrokerError(
                f"{publication.topic}: {size} bytes are too large, the broker takes packets of {self._largest_packet}",
                code="too_large",
            )
        with self._lock:
            if not self._open:
                raise BrokerError("not connected to the broker", code="not_connected")
            if len(self._in_flight) < self._window:
                self._send(ticket, publication)
                self._wake()
            elif len(self._waiting) < self._options.max_waiting:
                self._waiting.append((ticket, publication))
            else:
                raise BrokerError(f"{self._options.max_waiting} publications are waiting already", code="window_full")

    def ack(self, received: Received) -> None:
        """Acknowledge a message of this connection; it leaves once all that arrived before it are acknowledged."""
        with self._lock:
            for mid in self._acknowledgements.done(received.delivery):
                self._paho.ack(mid, 1)
            self._wake()

    def disconnect(self) -> None:
        """Say goodbye, so that the will is not published; `run` returns soon after."""
        self._leaving = True
        self._paho.disconnect()
        with self._lock:
            self._wake()

    def _wake(self) -> None:
        """Have written what was queued, if another thread must do it; under the lock, lest the pipe be closed."""
        if self._network_thread not in (None, threading.get_ident()):
            self._network.wake()

    def abort(self) -> None:
        """End without the broker's help."""
        self._leaving = True
        sock = self._paho.socket()
        if isinstance(sock, socket.socket):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError as error:
                _log.debug("the socket was gone already: %s", error)

    def _connect(self) -> bool:
        settings, options = self._settings, self._options
        try:
            if settings.tls:
                self._paho.tls_set_context(tls_context(settings))
            if self._protocol is MQTT_5:
                self._paho.connect(
                    settings.host,
                    settings.port,
                    options.keepalive_seconds,
                    clean_start=options.clean,
                    properties=connect_properties(
                        0 if options.clean else options.session_expiry_seconds, options.receive_maximum
                    ),
                )
            else:
                self._paho.connect(settings.host, settings.port, options.keepalive_seconds)
        except UsageError as error:  # a certificate file that was there at the start
            self._failure = Failure(str(error), permanent=True)
        except (OSError, ValueError) as error:
            self._failure = connection_failed(error, handshake=settings.tls)
        return self._failure is None

    def _serve(self, listener: Listener) -> bool:
        """Run the network loop until the socket is gone; whether the broker had accepted us."""
        deadline = time.monotonic() + self._options.connect_timeout_seconds
        while self._paho.socket() is not None:
            code = self._network.step(_SELECT_SECONDS, lambda: self._dispatch(listener))
            if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
                break
            if not self._open and time.monotonic() > deadline:
                self._failure = connection_failed(TimeoutError())
                self._older_protocol = True
                break
        if not self._open and self._failure is None and self._trouble.failure is None:
            self._older_protocol = True  # some brokers close the socket instead of answering an unknown version
        return self._open

    def _dispatch(self, listener: Listener) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, paho.MQTTMessage):
                self._message(event, listener)
            elif isinstance(event, Puback):
                self._confirmed(event, listener)
            elif isinstance(event, Connack):
                self._answered(event, listener)
            elif isinstance(event, Suback):
                answers = zip(self._options.subscriptions, event.reasons, strict=False)
                listener.subscribed({each: refused(reason) for each, reason in answers if reason.is_failure})
            else:
                self._failure = disconnected_by_broker(event.reason)

    def _answered(self, connack: Connack, listener: Listener) -> None:
        if connack.reason.is_failure:
            self._failure = connect_refused(connack.reason)
            self._older_protocol = connack.reason.value == _UNSUPPORTED_PROTOCOL
            return
        with self._lock:
            self._window = min(self._window, getattr(connack.properties, "ReceiveMaximum", self._window))
            self._largest_packet = getattr(connack.properties, "MaximumPacketSize", None)
            self._open = True
        if self._options.subscriptions:
            self._paho.subscribe(with_qos_1(self._options.subscriptions, self._protocol))
        listener.connected(self, Connected(self.number, connack.flags.session_present, int(self._protocol)))
        if not self._options.subscriptions:
            listener.subscribed({})

    def _message(self, message: paho.MQTTMessage, listener: Listener) -> None:
        self._deliveries += 1
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""
        received = Received(
            topic=topic,
            payload=bytes(message.payload),
            dup=bool(message.dup),
            retain=bool(message.retain),
            connection=self.number,
            mid=message.mid,
            qos=message.qos,
            response_topic=getattr(message.properties, "ResponseTopic", None),
            correlation=getattr(message.properties, "CorrelationData", None),
            delivery=self._deliveries,
        )
        if message.qos:
            with self._lock:
                self._acknowledgements.arrived(received.delivery, message.mid)
        if not topic:
            _log.error("dropped a message of %d bytes: its topic is not UTF-8", len(received.payload))
            self.ack(received)
        elif not listener.received(received):
            with self._lock:
                for mid in self._acknowledgements.given_up(received.delivery):
                    self._paho.ack(mid, 1)

    def _confirmed(self, puback: Puback, listener: Listener) -> None:
        with self._lock:
            ticket = self._in_flight.pop(puback.mid, None)
            while self._waiting and len(self._in_flight) < self._window:
                self._send(*self._waiting.popleft())
        if ticket is not None:
            if puback.reason.is_failure:
                listener.published(ticket, refused(puback.reason), puback.reason.value)
            else:
                listener.published(ticket, None, None)

    def _send(self, ticket: int, publication: Publication) -> None:
        properties = publish_properties(publication) if self._protocol is MQTT_5 else None
        info = self._paho.publish(
            publication.topic, publication.payload, publication.qos, publication.retain, properties
        )
        # whether it was written or the socket has just gone: without a PUBACK it will be reported as disconnected
        self._in_flight[info.mid] = ticket

    def _close(self, listener: Listener) -> None:
        with self._lock:
            self._open = False
            lost = [*self._in_flight.values(), *(ticket for ticket, _ in self._waiting)]
            self._in_flight.clear()
            self._waiting.clear()
            self._network_thread = None
            self._network.close()
        sock = self._paho.socket()
        if sock is not None:
            sock.close()
        for ticket in lost:
            listener.published(ticket, DISCONNECTED, None)


def _hung_up(connected: bool) -> Failure:
    if connected:
        return Failure("the broker closed the connection (it stopped, or another client has the same client id)")
    return Failure("the broker closed the connection without an answer: does the port want TLS, is it MQTT at all?")
