"""What a local controller refused: look at it, send it once more, throw it away."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.cli.output import Format, print_json, print_lines, print_list, table
from lc_events.cli.reading import Config, Output

if TYPE_CHECKING:
    from lc_events.controller.quarantine import Quarantine, Refused
    from lc_events.messages.json import JsonObject

__all__ = ["family"]

family = typer.Typer()
_commands = typer.Typer(no_args_is_help=True, help="What was refused: list, show, retry, drop.")
family.add_typer(_commands, name="quarantine")

_StateDir = Annotated[
    Path | None, typer.Option("--state-dir", metavar="DIR", help="The controller's state folder. [LC_STATE_DIR]")
]
_Id = Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it, and `sedna/errors/NODE` in `quarantine`.")]


@_commands.command("list")
def list_entries(state_dir: _StateDir = None, config: Config = None, output: Output = Format.TABLE) -> None:
    """List what was refused, the oldest first."""
    import orjson

    quarantine = _quarantine(state_dir, config)
    entries = list(quarantine.entries())
    if output is not Format.TABLE:
        print_list((orjson.dumps(_described(entry)) for entry in entries), output)
        return
    rows = ((entry.id, entry.code, entry.topic, entry.error) for entry in entries)
    print_lines(table(("ID", "CODE", "TOPIC", "ERROR"), rows))
    if dropped := quarantine.dropped():
        typer.echo(f"{dropped} older ones were dropped to make room", err=True)


@_commands.command()
def show(entry_id: _Id, state_dir: _StateDir = None, config: Config = None, output: Output = Format.JSON) -> None:
    """Show a refused message without its secrets."""
    from lc_events.controller.refused_text import shown

    entry = _quarantine(state_dir, config).get(entry_id)
    form = Format.JSON if output is Format.TABLE else output
    print_json({**_described(entry), "payload": shown(entry.payload)}, form)


@_commands.command()
def retry(
    entry_id: _Id,
    state_dir: _StateDir = None,
    config: Config = None,
    mqtt_url: Annotated[
        str | None, typer.Option("--mqtt-url", metavar="URL", help="Broker [LC_MQTT_URL, GM_MQTT_URL].")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for it.")] = 10.0,
) -> None:
    """Send a refused message through the broker again, as it came; if it is refused again, it is kept again."""
    from lc_events.errors import UsageError
    from lc_events.mqtt.oneshot import send
    from lc_events.mqtt.packets import Publication
    from lc_events.settings.programs import broker_settings

    quarantine = _quarantine(state_dir, config)
    entry = quarantine.get(entry_id)
    if not entry.is_whole:
        raise UsageError(
            f"{entry_id} cannot be sent again: of its {entry.size} bytes only {len(entry.payload)} were kept"
        )
    settings = broker_settings(mqtt_url=mqtt_url, config=None if config is None else str(config))
    send(settings.mqtt, Publication(entry.topic, entry.payload), timeout=timeout)
    quarantine.drop(entry_id)
    typer.echo(f"sent again to {entry.topic}")


@_commands.command()
def drop(entry_id: _Id, state_dir: _StateDir = None, config: Config = None) -> None:
    """Throw a refused message away."""
    _quarantine(state_dir, config).drop(entry_id)


def _quarantine(state_dir: Path | None, config: Path | None) -> Quarantine:
    from lc_events.controller.quarantine import Quarantine
    from lc_events.settings.files import LC_STATE_DIR, read_config

    named = config or os.environ.get("LC_CONFIG")
    table_ = read_config(Path(named)) if named else {}
    folder = state_dir or os.environ.get("LC_STATE_DIR") or table_.get("state_dir") or LC_STATE_DIR
    return Quarantine(Path(str(folder)).expanduser() / "quarantine")


def _described(entry: Refused) -> JsonObject:
    return {
        "id": entry.id,
        "time": entry.time,
        "code": entry.code,
        "error": entry.error,
        "topic": entry.topic,
        "bytes": entry.size,
    }
