"""What an operator tells the stand-alone global manager: take these manifests, take one back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.errors import BrokerError, RefusedError

if TYPE_CHECKING:
    from lc_events.settings.programs import BrokerSettings

__all__ = ["family"]

family = typer.Typer()

_NOT_AUTHORIZED = "(0x87)"
"""MQTT's reason code, which stands in the words for a CONNACK, SUBACK and PUBACK alike."""

_TopicRoot = Annotated[
    str | None, typer.Option("--topic-root", metavar="ROOT", help="Root of all topics [LC_TOPIC_ROOT, GM_TOPIC_ROOT].")
]
_MqttUrl = Annotated[str | None, typer.Option("--mqtt-url", metavar="URL", help="Broker [LC_MQTT_URL, GM_MQTT_URL].")]
_Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for GM's answer.")]


@family.command()
def apply(
    *,
    files: Annotated[
        list[Path],
        typer.Option("-f", "--file", metavar="FILE", help="Manifests (YAML); - is standard input. May be repeated."),
    ],
    mqtt_url: _MqttUrl = None,
    topic_root: _TopicRoot = None,
    timeout: _Timeout = 10.0,
) -> None:
    """Give Sedna manifests to the global manager; all are checked before the first is sent."""
    from lc_events.gm.client import apply_resource, check_resource
    from lc_events.gm.manifests import read_manifests_file
    from lc_events.mqtt.topics import Topics
    from lc_events.settings.programs import broker_settings

    read = [(file, read_manifests_file(file)) for file in files]
    for file, resources in read:
        for number, resource in enumerate(resources, start=1):
            try:
                check_resource(resource)
            except RefusedError as error:
                raise RefusedError(f"{file}, resource {number} of {len(resources)}: {error}", code=error.code) from None
    settings = broker_settings(mqtt_url=mqtt_url, topic_root=topic_root)
    for resource in (resource for _, resources in read for resource in resources):
        with _account_named(settings, mqtt_url):
            done = apply_resource(settings.mqtt, Topics(settings.topic_root), resource, timeout=timeout)
        note = f"; {done['note']}" if done.get("note") else ""
        typer.echo(f"{str(done['kind']).lower()}/{done['namespace']}/{done['name']} {done['result']}{note}")


@family.command()
def delete(
    *,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="LifelongLearningJob or Dataset.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="NAMESPACE/NAME, or NAME in `default`.")],
    mqtt_url: _MqttUrl = None,
    topic_root: _TopicRoot = None,
    timeout: _Timeout = 10.0,
) -> None:
    """Take a job or dataset back from the global manager; its history stays."""
    from lc_events.gm.client import delete_resource
    from lc_events.mqtt.topics import Topics
    from lc_events.settings.programs import broker_settings

    namespace, _, short = name.rpartition("/")
    settings = broker_settings(mqtt_url=mqtt_url, topic_root=topic_root)
    topics = Topics(settings.topic_root)
    with _account_named(settings, mqtt_url):
        done = delete_resource(settings.mqtt, topics, kind, namespace or "default", short, timeout=timeout)
    typer.echo(f"{str(done['kind']).lower()}/{done['namespace']}/{done['name']} {done['result']}")


@contextmanager
def _account_named(settings: BrokerSettings, mqtt_url: str | None) -> Iterator[None]:
    """Have a BrokerError that says no to us name who we are: a terminal may have the controller's settings."""
    try:
        yield
    except BrokerError as error:
        if _NOT_AUTHORIZED not in str(error):
            raise
        user = settings.mqtt.username
        who = "without a user" if user is None else f"as user {user}"
        words = f"{who}, from {_source(settings, mqtt_url)}; apply and delete need an operator's account"
        raise BrokerError(f"{error} ({words})", code=error.code) from None


def _source(settings: BrokerSettings, mqtt_url: str | None) -> str:
    if mqtt_url is not None:
        return "--mqtt-url"
    variable, other = settings.variable("mqtt_url"), "GM_MQTT_URL"
    is_before = variable != other and os.environ.get(other)
    return f"{variable}, which goes before {other}" if is_before else variable
