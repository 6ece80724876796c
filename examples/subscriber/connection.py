"""The way to the broker, in MQTT 5 or 3.1.1: paho's thread only fills an inbox, all else is done elsewhere."""

from __future__ import annotations

import argparse
import os
import queue
import secrets
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

CONNECTED = "connected"
PORTS = {"mqtt": 1883, "mqtts": 8883}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What says where the broker is, and who we are there."""
    url = os.environ.get("MQTT_URL", "mqtt://127.0.0.1:1883")
    parser.add_argument("--url", default=url, help="mqtt:// or mqtts://[USER[:PASSWORD]@]HOST[:PORT] [MQTT_URL]")
    parser.add_argument("--mqtt", choices=("5", "3.1.1"), default="5", help="version of the protocol (default: 5)")
    for name, what in (
        ("password", "the password of the user in the URL"),
        ("ca", "CA certificates, for mqtts"),
        ("cert", "our certificate"),
        ("key", "its key"),
    ):
        parser.add_argument(f"--{name}-file", type=Path, metavar="FILE", help=f"file with {what}")


class Connection:
    """Connects, again and again, without a session: whatever was missed meanwhile is asked for afterwards.

    The inbox gets each message, and as words what becomes of the connection: CONNECTED, or why there is none.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        url = urlsplit(arguments.url)
        user = unquote(url.username) if url.username else None
        password = arguments.password_file.read_text().strip() if arguments.password_file else url.password
        self.inbox: queue.SimpleQueue[paho.MQTTMessage | str] = queue.SimpleQueue()
        self.asker = user or f"subscriber-{secrets.token_hex(6)}"
        """Under which name to ask: an ACL usually lets a device hear only the answers to its own user name."""
        self._filters: list[tuple[str, int]] = []
        self._is_mqtt_5 = arguments.mqtt == "5"
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"subscriber-{secrets.token_hex(8)}",
            protocol=MQTTProtocolVersion.MQTTv5 if self._is_mqtt_5 else MQTTProtocolVersion.MQTTv311,
        )
        if user is not None:
            self._client.username_pw_set(user, unquote(password) if password else None)
        if url.scheme == "mqtts":
            self._client.tls_set(arguments.ca_file, arguments.cert_file, arguments.key_file)
        self._client.reconnect_delay_set(1, 30)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = lambda *_: self.inbox.put("disconnected")
        self._client.on_message = lambda _client, _data, message: self.inbox.put(message)
        self._client.connect_async(
            url.hostname or "127.0.0.1",
            url.port or PORTS.get(url.scheme, 1883),
            # in MQTT 5 said with each connection; paho by itself says it only with the first
            clean_start=True if self._is_mqtt_5 else paho.MQTT_CLEAN_START_FIRST_ONLY,
        )

    def start(self, topics: Sequence[str]) -> None:
        """Begin to connect, and subscribe with each connection anew: retained messages come again each time."""
        self._filters = [(topic, 1) for topic in topics]
        self._client.loop_start()

    def stop(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, payload: str, *, answer_topic: str) -> None:
        """Publish a request.

        The payload says where the answer goes: MQTT 5's own way to say it need not survive a bridge.
        """
        properties = None
        if self._is_mqtt_5:
            properties = Properties(PacketTypes.PUBLISH)
            properties.ResponseTopic = answer_topic
        self._client.publish(topic, payload, qos=1, properties=properties)

    def _on_connect(
        self, client: paho.Client, _data: object, _flags: object, reason: ReasonCode, _properties: object
    ) -> None:
        if reason.is_failure:
            self.inbox.put(f"the broker refuses us: {reason}")
        else:
            client.subscribe(self._filters)
            self.inbox.put(CONNECTED)
