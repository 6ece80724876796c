"""Whether the broker can be reached, safely, and keeps a session: tried with throw-away client ids."""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address

from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.errors import BrokerError, UsageError
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.packets import Connected
from lc_events.mqtt.paho_client import MQTT_5
from lc_events.mqtt.reasons import connection_failed
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.tls import tls_context

__all__ = ["WAIT", "check_broker", "check_session", "check_tls"]

WAIT = 5.0
"""Seconds for one answer of the broker."""

_FAILURE = 1.0
"""Seconds for a few attempts: the first one does not always learn why it failed."""
_EXPIRES_SOON = 14 * 24 * 3600
_SESSION_SECONDS = 60


def check_broker(mqtt: MqttSettings) -> Iterator[Finding]:
    """Connect as the program would, but under another client id."""
    began = time.monotonic()
    try:
        connected = _connect(replace(mqtt, client_id=None), clean=True)
    except (BrokerError, UsageError) as error:
        advice = "start the broker (an internal one comes with its controller), or correct LC_MQTT_… as the words say"
        yield wrong("broker", str(error), advice)
        return
    version = "MQTT 5" if connected.protocol == MQTT_5 else "MQTT 3.1.1 only"
    took = (time.monotonic() - began) * 1000
    yield ok("broker", f"{mqtt.display_url} answers within {took:.0f} ms, {version}")


def check_tls(mqtt: MqttSettings) -> Iterator[Finding]:
    """How the connection is protected, and for how long its certificate is valid."""
    if not mqtt.tls:
        if _is_this_machine(mqtt.host):
            yield ok("tls", "not used; the broker is on this machine")
        else:
            yield note(
                "tls", f"passwords cross the network to {mqtt.host} in clear", "use mqtts:// and LC_MQTT_CA_FILE"
            )
        return
    try:
        with (
            socket.create_connection((mqtt.host, mqtt.port), WAIT) as plain,
            tls_context(mqtt).wrap_socket(plain, server_hostname=mqtt.host) as secured,
        ):
            version, certificate = secured.version(), secured.getpeercert()
    except UsageError as error:
        yield wrong("tls", str(error), "correct the file, or the setting that names it")
    except OSError as error:
        words = connection_failed(error, handshake=True).words
        yield wrong("tls", words, "compare LC_MQTT_CA_FILE, LC_MQTT_CERT_FILE and the broker's own certificate")
    else:
        yield _validity(str(version), str((certificate or {}).get("notAfter", "")))


def _validity(version: str, not_after: str) -> Finding:
    try:
        left = ssl.cert_time_to_seconds(not_after) - time.time()
    except ValueError:
        return ok("tls", version)
    says = f"{version}, the broker's certificate is valid until {not_after}"
    return ok("tls", says) if left > _EXPIRES_SOON else note("tls", says, "renew it before it expires")


def check_session(mqtt: MqttSettings) -> Iterator[Finding]:
    """Whether the broker keeps the session of a client that is away: else messages that come meanwhile are lost."""
    client = replace(mqtt, client_id=f"doctor-{secrets.token_hex(8)}")
    try:
        _connect(client, clean=False)
        is_kept = _connect(client, clean=False).session_present
        _connect(client, clean=True)  # takes the session away again
    except BrokerError as error:
        yield wrong("session", str(error), "see the broker's log")
        return
    if is_kept:
        yield ok("session", "the broker keeps the session of a client that is away")
    else:
        yield wrong(
            "session",
            "the broker forgets the session of a client that is away, and what comes for it meanwhile",
            "allow persistent sessions in the broker's configuration",
        )


def _connect(settings: MqttSettings, *, clean: bool) -> Connected:
    """Connect once and leave; BrokerError in words."""
    connections: list[Connected] = []
    with MqttClient(
        settings,
        on_message=lambda _: None,
        on_connected=connections.append,
        clean=clean,
        session_expiry_seconds=_SESSION_SECONDS,
        connect_timeout_seconds=WAIT,
    ) as client:
        try:
            client.wait_connected(_FAILURE)
        except BrokerError:
            if client.last_error is not None:
                raise
            client.wait_connected(WAIT)
    return connections[-1]


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
