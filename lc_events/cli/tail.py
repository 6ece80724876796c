"""Live events from the broker: `tail`."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.cli.output import Format, fold, json_text, print_json, print_lines
from lc_events.cli.reading import Output, zone
from lc_events.errors import RefusedError, UsageError
from lc_events.messages.names import is_word, parts_of
from lc_events.printable import printable

if TYPE_CHECKING:
    from lc_events.cli.live_events import LiveEvent
    from lc_events.mqtt.packets import Connected, Received
    from lc_events.mqtt.topics import Topics
    from lc_events.settings.programs import BrokerSettings

__all__ = ["family"]

family = typer.Typer()

_FIRST_CONNECTION = 5.0
_WAITING = 10_000
_NAME_WIDTH = len("GlobalManagerMessageReceived")


@family.command()
def tail(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="NAMESPACE/NAME; without it, all jobs and datasets.")
    ] = None,
    *,
    node: Annotated[str | None, typer.Option("--node", metavar="NODE", help="Only of this node.")] = None,
    mqtt_url: Annotated[
        str | None, typer.Option("--mqtt-url", metavar="URL", help="Broker [LC_MQTT_URL, GM_MQTT_URL].")
    ] = None,
    topic_root: Annotated[
        str | None,
        typer.Option("--topic-root", metavar="ROOT", help="Root of all topics [LC_TOPIC_ROOT, GM_TOPIC_ROOT]."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="TOML file with the broker's settings. [LC_CONFIG]")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show events as they happen, until Ctrl-C; as json and jsonl, they are CloudEvents."""
    from lc_events.application.audit.names import job_stream
    from lc_events.cli.live_events import LiveEvents
    from lc_events.mqtt.topics import Topics
    from lc_events.settings.programs import broker_settings

    stream = None if job is None else job_stream(job)
    settings = broker_settings(mqtt_url=mqtt_url, topic_root=topic_root, config=config)
    topics, local = Topics(settings.topic_root), zone()
    live = LiveEvents(topics)
    with _listening(settings, _filter(topics, node, stream)) as heard:
        while True:
            received = heard.get()
            try:
                event = live.read(received)
            except RefusedError as error:
                _say(f"{received.topic}: passed over: {error}")
                continue
            if event is not None and stream in (None, event.stream):
                _show(event, output, local)


def _filter(topics: Topics, node: str | None, stream: str | None) -> str:
    if node is not None and not is_word(node):
        raise UsageError(f"--node {node!r}: the name of a node is 1 to 64 of A-Z a-z 0-9 _ . -")
    if stream is None:
        return topics.events_filter(node)
    namespace, _, name = parts_of(stream)
    return topics.events_filter(node, namespace, name)


@contextmanager
def _listening(settings: BrokerSettings, topic_filter: str) -> Iterator[queue.Queue[Received]]:
    """What is heard from now on, over all connections; BrokerError if there is no first one."""
    from lc_events.logs import configure_logging
    from lc_events.mqtt.client import MqttClient

    configure_logging("debug" if settings.log == "debug" else "error", settings.log_format)
    heard: queue.Queue[Received] = queue.Queue(_WAITING)

    def take(received: Received) -> None:
        client.ack(received)
        if not received.retain:  # no controller retains events: this is an old one that somebody else retained
            try:
                heard.put_nowait(received)
            except queue.Full:
                return  # the terminal stands still; the gap is shown when it goes on

    def connected(connection: Connected) -> None:
        if connection.connection > 1:
            _say("connected again")

    client = MqttClient(
        settings.mqtt, subscriptions=[topic_filter], on_message=take, on_connected=connected, clean=True
    )
    with client:
        client.wait_connected(_FIRST_CONNECTION)
        configure_logging("debug" if settings.log == "debug" else "warning", settings.log_format)
        _say(f"listening to {topic_filter} on {settings.mqtt.display_url}")
        yield heard


def _show(event: LiveEvent, form: Format, local: str) -> None:
    from lc_events.application.audit.names import short_name
    from lc_events.cli.live_events import in_words
    from lc_events.cli.moments import show_time

    name = short_name(event.stream)
    if event.missing is not None:
        first, last = event.missing
        versions = f"version {first} was" if first == last else f"versions {first} to {last} were"
        _say(f"{event.node} {name}: {versions} not heard; see `lc-events history {name} --from {first} --to {last}`")
    if form is Format.JSON:
        import orjson

        print_json(orjson.loads(event.line), form)
    elif form is Format.JSONL:
        typer.echo(json_text(event.line))
    else:
        time, kind = show_time(event.time, local), event.name[:80]
        head = f"{time}  {event.node:8}  {name:24}  {event.version:>6}  {kind:{_NAME_WIDTH}}"
        print_lines(fold(printable(head), printable(in_words(event))))


def _say(words: str) -> None:
    typer.echo(f"lc-events: {printable(words[:1000])}", err=True)
