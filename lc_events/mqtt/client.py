"""A client that stays connected: MQTT 5, 3.1.1 where the broker speaks only that; at least once, bounded memory."""

from __future__ import annotations

import itertools
import logging
import random
import secrets
import threading
import time
from typing import TYPE_CHECKING, Self

from lc_events.errors import BrokerError, UsageError
from lc_events.mqtt.connection import Connection, ConnectionOptions, Ended, Listener
from lc_events.mqtt.packets import DISCONNECTED, Connected, Publication, Received
from lc_events.mqtt.paho_client import MQTT_3_1_1, MQTT_5
from lc_events.mqtt.reasons import Failure
from lc_events.mqtt.tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lc_events.mqtt.settings import MqttSettings

__all__ = ["DISCONNECTED", "Connected", "MqttClient", "Publication", "Received"]

_log = logging.getLogger("lc_events.mqtt")

_STABLE_SECONDS = 10.0
_NOT_TRIED = Ended(connected=False, failure=None, older_protocol=False)


class MqttClient:
    """Connects on a thread of its own and connects again, with growing pauses, until `stop`.

    The callbacks run on that thread, one at a time, outside all locks; one that raises is logged. `on_message` must
    see to it that `ack` is called once the message is safe: with QoS 1 the broker sends at most `receive_maximum`
    before that. A message whose `on_message` raised stays unacknowledged and comes again with the next connection.
    `will` may be a function, called before each connection, for a will that names it; `may_connect` is asked before
    each, and what it refuses is tried again later. With `clean` there is no session:
    what comes while we are away is lost. All subscriptions are made anew with each connection, so retained messages
    come again too.
    """

    def __init__(
        self,
        settings: MqttSettings,
        *,
        subscriptions: Sequence[str] = (),
        will: Publication | Callable[[], Publication] | None = None,
        on_message: Callable[[Received], None],
        on_connected: Callable[[Connected], None] | None = None,
        on_published: Callable[[int, str | None, int | None], None] | None = None,
        may_connect: Callable[[], bool] | None = None,
        clean: bool = False,
        session_expiry_seconds: int = 7 * 24 * 3600,
        receive_maximum: int = 500,
        keepalive_seconds: int = 30,
        connect_timeout_seconds: float = 10.0,
        reconnect_seconds: tuple[float, float] = (0.2, 10.0),
        window: int = 100,
        max_waiting: int = 1000,
        log_failures: bool = True,
    ) -> None:
        """Without `log_failures` only who waits for the connection is told why there is none.

        UsageError if a persistent session has no client id, or a TLS file cannot be used.
        """
        if not clean and not settings.client_id:
            raise UsageError("an MQTT session that outlives its connection needs a client id")
        if settings.tls:
            tls_context(settings)
        self.settings = settings
        self._client_id = settings.client_id or f"lc-events-{secrets.token_hex(8)}"
        self._options = ConnectionOptions(
            subscriptions=tuple(subscriptions),
            clean=clean,
            session_expiry_seconds=session_expiry_seconds,
            receive_maximum=receive_maximum,
            keepalive_seconds=keepalive_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
            window=window,
            max_waiting=max_waiting,
        )
        self._will = will
        self._on_message = on_message
        self._on_connected = on_connected
        self._on_published = on_published
        self._may_connect = may_connect
        self._first_pause, self._longest_pause = reconnect_seconds
        self._log_failures = log_failures
        self._tickets = itertools.count(1)
        self._thread = threading.Thread(target=self._run, name=f"mqtt-{self._client_id}", daemon=True)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._connections = 0
        self._attempt: Connection | None = None
        self._current: Connection | None = None
        self._subscribed = False
        self._refused: dict[str, str] = {}
        self._failure: Failure | None = None
        self._awaited: dict[int, str | None] = {}

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted us and the connection is not known to be gone."""
        return self._current is not None

    @property
    def connection(self) -> int:
        """Number of the newest connection, 0 before the first."""
        return self._connections

    @property
    def last_error(self) -> str | None:
        """Why there is no connection, in words; None while there is one."""
        return self._failure.words if self._failure else None

    @property
    def refused_subscriptions(self) -> dict[str, str]:
        """Filters that the broker denied on this connection, with the reason in words."""
        return dict(self._refused)

    def start(self) -> None:
        """Begin to connect, and return at once; a broker that is not there is logged, not raised."""
        self._thread.start()

    def wait_connected(self, timeout: float) -> None:
        """Wait until connected and subscribed; BrokerError in words after `timeout` s, or at once if it cannot help."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._subscribed or (self._failure is not None and self._failure.permanent), timeout
            )
            if self._refused:
                refusals = "; ".join(f"{each}: {reason}" for each, reason in self._refused.items())
                raise BrokerError(
                    f"the broker at {self.settings.display_url} denies subscriptions: {refusals}", code="denied"
                )
            if not self._subscribed:
                words = self._failure.words if self._failure else f"no answer within {timeout:g} s"
                raise BrokerError(f"no connection to {self.settings.display_url}: {words}")

    def publish(self, publication: Publication, *, connection: int | None = None) -> int:
        """Send and return a ticket, for which `on_published` is called exactly once with None or the error in words.

        Its third argument is the reason code of a broker that refused (MQTT 5, 3.4.2.1), else None. It may be called
        before this method has returned: a lock held over both is safe. Error DISCONNECTED means that nobody knows
        whether the broker has it. BrokerError if it was not sent: code `not_connected` (with `connection` also if
        this is another one by now), `window_full` (`window` unconfirmed, `max_waiting` behind them) or `too_large`
        for the broker.
        """
        ticket = next(self._tickets)
        self._publish(ticket, publication, connection)
        return ticket

    def publish_and_wait(self, publication: Publication, timeout: float) -> None:
        """Publish and return once the broker confirmed it; BrokerError in words if not. Not for use in a callback."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("publish_and_wait in a callback would wait for itself")
        ticket = next(self._tickets)
        with self._changed:
            self._awaited[ticket] = None
        settled = False
        try:
            self._publish(ticket, publication)
            with self._changed:
                settled = self._changed.wait_for(lambda: self._awaited[ticket] is not None, timeout)
        finally:
            with self._changed:
                error = self._awaited.pop(ticket)
        if not settled:
            raise BrokerError(f"{publication.topic}: the broker did not confirm within {timeout:g} s")
        if error:
            raise BrokerError(f"{publication.topic}: {error}")

    def ack(self, received: Received) -> None:
        """Acknowledge a message; ignored once its connection has ended, for then the broker sends it again anyway."""
        connection = self._current
        if connection is not None and connection.number == received.connection:
            connection.ack(received)

    def stop(self, farewell: Publication | None = None, *, timeout: float = 5.0) -> None:
        """Publish `farewell`, wait for the broker's word, disconnect; at most about `timeout` s, whatever happens."""
        deadline = time.monotonic() + timeout
        in_callback = threading.current_thread() is self._thread
        if farewell is not None and not in_callback and self.connected:
            try:
                self.publish_and_wait(farewell, timeout)
            except BrokerError as error:
                _log.warning("farewell: %s", error)
        self._stopping.set()
        connection = self._current
        if connection is not None:
            connection.disconnect()
        if in_callback or not self._thread.is_alive():
            return
        if connection is not None:
            self._thread.join(max(0.5, deadline - time.monotonic()))
        if self._attempt is not None:
            self._attempt.abort()
        self._thread.join(1.0)
        if self._thread.is_alive():
            _log.warning("the MQTT thread still waits for %s", self.settings.display_url)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop without a farewell."""
        self.stop()

    def _publish(self, ticket: int, publication: Publication, number: int | None = None) -> None:
        connection = self._current
        if connection is None or number not in (None, connection.number):
            raise BrokerError(f"not connected to {self.settings.display_url}", code="not_connected")
        connection.publish(ticket, publication)

    def _run(self) -> None:
        pause = self._first_pause
        while not self._stopping.is_set():
            began = time.monotonic()
            ended = self._connect_once() if self._is_allowed() else _NOT_TRIED
            if self._stopping.is_set():
                break
            if ended.connected and time.monotonic() - began > _STABLE_SECONDS:
                pause = self._first_pause
            # spread out, for all clients of a broker lose it at the same time
            self._stopping.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(pause * 2, self._longest_pause)

    def _is_allowed(self) -> bool:
        if self._may_connect is None:
            return True
        try:
            return self._may_connect() and not self._stopping.is_set()
        except Exception:  # noqa: BLE001 (the thread must live)
            _log.exception("may_connect failed")
            return True

    def _connect_once(self) -> Ended:
        """One connection; a second one with 3.1.1 if the broker seems to know nothing newer."""
        ended = _NOT_TRIED
        listener = Listener(self._note_connected, self._note_subscribed, self._note_received, self._note_published)
        for protocol in (MQTT_5, MQTT_3_1_1):
            try:
                self._attempt = Connection(
                    self.settings,
                    self._options,
                    number=self._connections + 1,
                    protocol=protocol,
                    client_id=self._client_id,
                    will=self._will() if callable(self._will) else self._will,
                )
                ended = self._attempt.run(listener)
            except Exception as error:  # noqa: BLE001 (the thread must live)
                _log.exception("the connection to %s failed", self.settings.display_url)
                ended = Ended(connected=False, failure=Failure(str(error)), older_protocol=False)
            if ended.connected or not ended.older_protocol or self._stopping.is_set():
                break
        self._note_end(ended)
        return ended

    def _note_end(self, ended: Ended) -> None:
        with self._changed:
            news = ended.failure is not None and ended.failure != self._failure
            self._current = None
            self._subscribed = False
            self._refused = {}
            self._failure = ended.failure
            self._changed.notify_all()
        if ended.failure is not None:
            # once for each reason: a broker may be away for days
            _log.log(
                logging.WARNING if news and self._log_failures else logging.DEBUG,
                "no connection to %s: %s; trying again",
                self.settings.display_url,
                ended.failure.words,
            )

    def _note_connected(self, connection: Connection, connected: Connected) -> None:
        if self._stopping.is_set():
            connection.disconnect()
            return
        with self._changed:
            self._connections = connected.connection
            self._current = connection
            self._failure = None
        _log.log(
            logging.DEBUG if self._options.clean else logging.INFO,
            "connected to %s (MQTT %s, %s)",
            self.settings.display_url,
            "5" if connected.protocol == MQTT_5 else "3.1.1",
            "session kept" if connected.session_present else "new session",
        )
        if self._on_connected is not None:
            try:
                self._on_connected(connected)
            except Exception:  # noqa: BLE001 (the thread must live)
                _log.exception("on_connected failed")

    def _note_subscribed(self, refused: dict[str, str]) -> None:
        for each, reason in refused.items():
            _log.error("subscription to %s denied: %s", each, reason)
        with self._changed:
            self._subscribed = True
            self._refused = refused
            self._changed.notify_all()

    def _note_received(self, received: Received) -> bool:
        try:
            self._on_message(received)
        except Exception:  # noqa: BLE001 (the thread must live)
            _log.exception("on_message failed for %s; the broker will send it again", received.topic)
            return False
        return True

    def _note_published(self, ticket: int, error: str | None, reason: int | None) -> None:
        with self._changed:
            if ticket in self._awaited:
                self._awaited[ticket] = error or ""
                self._changed.notify_all()
                return
        if self._on_published is not None:
            try:
                self._on_published(ticket, error, reason)
            except Exception:  # noqa: BLE001 (the thread must live)
                _log.exception("on_published failed")
        elif error:
            level = logging.DEBUG if error == DISCONNECTED else logging.WARNING
            _log.log(level, "a publication was not confirmed: %s", error)
