"""What is wrong here, and what to do: `doctor`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.cli.output import Format, fold, print_json, print_lines
from lc_events.cli.reading import Output
from lc_events.printable import printable

if TYPE_CHECKING:
    from lc_events.doctor.finding import Finding

__all__ = ["family"]

family = typer.Typer()

_Text = str | None


@family.command()
def doctor(
    *,
    node: Annotated[_Text, typer.Option("--node", metavar="NODE", help="This edge node. [LC_NODE]")] = None,
    mqtt_url: Annotated[
        _Text, typer.Option("--mqtt-url", metavar="URL", help="Broker. [LC_MQTT_URL, GM_MQTT_URL]")
    ] = None,
    topic_root: Annotated[
        _Text, typer.Option("--topic-root", metavar="ROOT", help="Root of all topics. [LC_TOPIC_ROOT, GM_TOPIC_ROOT]")
    ] = None,
    state_dir: Annotated[
        _Text, typer.Option("--state-dir", metavar="DIR", help="State folder. [LC_STATE_DIR, GM_STATE_DIR]")
    ] = None,
    store: Annotated[_Text, typer.Option("--store", metavar="STORE", help="Event store. [LC_STORE]")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="TOML file with settings. [LC_CONFIG, GM_CONFIG]")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Check settings, store, disk, broker, rights, clock and data: a line each, with what to do.

    Ends with 1 if something is wrong. Run it as the controller's user, with its settings.
    """
    from lc_events.doctor.examination import examine
    from lc_events.doctor.finding import Level
    from lc_events.doctor.subject import read_subject

    if os.environ.get("LC_LOG", "").lower() != "debug":
        logging.getLogger("lc_events").setLevel(logging.CRITICAL)  # the printed lines say it
    subject = read_subject(
        {
            "node": node,
            "mqtt_url": mqtt_url,
            "topic_root": topic_root,
            "state_dir": state_dir,
            "store": store,
            "config": config,
        }
    )
    found = []
    for finding in examine(subject):
        found.append(finding)
        if output is Format.TABLE:
            print_lines(_lines(finding))
        elif output is Format.JSONL:
            print_json(_fields(finding), output)
    is_fine = all(finding.level is not Level.WRONG for finding in found)
    if output is Format.JSON:
        print_json({"ok": is_fine, "checks": list(map(_fields, found))}, output)
    if not is_fine:
        raise typer.Exit(1)


def _lines(finding: Finding) -> Iterator[str]:
    advice = "" if finding.advice is None else f" -> {finding.advice}"
    return fold(f"{finding.level.value:7}  {printable(finding.check):12}", printable(f"{finding.says}{advice}"))


def _fields(finding: Finding) -> dict[str, str | None]:
    return {**finding._asdict(), "level": finding.level.value}
