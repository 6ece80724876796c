"""What the broker lets us publish and hear, tried with messages that nobody acts on; MQTT 5 gives the reasons."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from lc_events.doctor.connection import WAIT
from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.domain.stamp import stamp
from lc_events.errors import BrokerError
from lc_events.messages.json import dumps
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.packets import DISCONNECTED, Connected, Publication, Received
from lc_events.mqtt.paho_client import MQTT_5
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import GM, Topics

__all__ = ["check_rights"]

_NOBODY = "doctor"
"""A node, worker or topic level that does not exist."""


def check_rights(mqtt: MqttSettings, topics: Topics, node: str | None) -> Iterator[Finding]:
    """Subscribe to what the program subscribes to, and publish where it publishes.

    MQTT cannot be asked about rights, so each publication is a real one: none is retained, all are empty or say
    nothing, on topics where none of our programs acts. `node` is None for the global manager.
    """
    filters = topics.gm_subscriptions() if node is None else topics.lc_subscriptions(node)
    probes = _gm_probes(topics) if node is None else _controller_probes(topics, node)
    connections: list[Connected] = []

    def take(received: Received) -> None:
        client.ack(received)

    client = MqttClient(
        replace(mqtt, client_id=None),
        subscriptions=filters,
        on_message=take,
        on_connected=connections.append,
        clean=True,
        connect_timeout_seconds=WAIT,
    )
    with client:
        try:
            client.wait_connected(WAIT)
        except BrokerError as error:
            if error.code != "denied":
                yield wrong("acl", str(error), "see the broker's log")
                return
        denied = {f"hearing {topic}": words for topic, words in client.refused_subscriptions.items()}
        denied |= _denied_publications(client, probes)
    has_none = all(_publishing(topic) in denied for topic in probes)
    yield from _findings(denied, _advice(mqtt, node, has_none=has_none), is_told=connections[-1].protocol == MQTT_5)


def _denied_publications(client: MqttClient, probes: Mapping[str, bytes]) -> dict[str, str]:
    denied = {}
    for topic, payload in probes.items():
        try:
            client.publish_and_wait(Publication(topic, payload), WAIT)
        except BrokerError as error:
            words = str(error).removeprefix(f"{topic}: ")
            denied[_publishing(topic)] = "the broker hung up" if words == DISCONNECTED else words
            if not client.connected:
                break
    return denied


def _publishing(topic: str) -> str:
    return f"publishing {topic}"


def _advice(mqtt: MqttSettings, node: str | None, *, has_none: bool) -> str:
    """An account that `has_none` of the rights may be another program's or an operator's, to whom they are not due."""
    who = "a user" if mqtt.username is None else f"the user {mqtt.username}"
    role = "gm" if node is None else f"lc for node {node}"
    give = f"give {who} the rights of the role {role} (mosquitto/acl)"
    if not has_none:
        return give
    own = "the local controller's account"
    if node is None:
        own = "the global manager's account, or a local controller's settings (LC_NODE, LC_MQTT_URL …)"
    return f"run doctor with {own}; only if that is what this account is for, {give}"


def _findings(denied: Mapping[str, str], advice: str, *, is_told: bool) -> Iterator[Finding]:
    for what, words in denied.items():
        yield wrong("acl", f"{what} is denied: {words}", advice)
    if denied:
        return
    if is_told:
        yield ok("acl", "all that it subscribes to and publishes is allowed")
    else:
        advice = "use a broker that speaks MQTT 5, or look for denied publications in its log"
        yield note("acl", "the broker speaks MQTT 3.1.1, which does not say what it denies", advice)


def _controller_probes(topics: Topics, node: str) -> dict[str, bytes]:
    """Topics below a controller's own, with a last level that no program knows; errors and done take no further one."""
    errors = topics.errors(node)
    report = {
        "code": "doctor",
        "error": "nothing is wrong: lc-events doctor tries whether this may be published",
        "topic": errors,
        "id": None,
        "quarantine": None,
        "time": stamp(datetime.now(UTC)),
    }
    return {
        **{f"{topics.root}/{part}/{node}/{_NOBODY}": b"" for part in ("up", "state", "events")},
        topics.answer(node, f"{_NOBODY}-{secrets.token_hex(4)}"): b"",
        topics.worker_done(node, _NOBODY): dumps({"id": None, "error": None}),
        errors: dumps(report),
    }


def _gm_probes(topics: Topics) -> dict[str, bytes]:
    return {
        f"{topics.root}/down/{_NOBODY}/{_NOBODY}": b"",
        topics.work(_NOBODY, _NOBODY): b"",
        topics.answer(GM, f"{_NOBODY}-{secrets.token_hex(4)}"): b"",
    }
