"""What an operator tells the stand-alone global manager: take these manifests, take one back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lc_events.errors import RefusedError

__all__ = ["family"]

family = typer.Typer()

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
    done = delete_resource(
        settings.mqtt, Topics(settings.topic_root), kind, namespace or "default", short, timeout=timeout
    )
    typer.echo(f"{str(done['kind']).lower()}/{done['namespace']}/{done['name']} {done['result']}")
