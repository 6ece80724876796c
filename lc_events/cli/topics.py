"""The topic table, for people and as a document for programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from lc_events.cli.output import fold, print_lines

__all__ = ["family"]

family = typer.Typer()


@family.command()
def topics(
    *,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write AsyncAPI 3, JSON Schemas and examples.")
    ] = None,
) -> None:
    """Show who sends what on which topic, or write it as documents."""
    from lc_events.asyncapi.channels import CHANNELS

    if export is None:
        for channel in CHANNELS:
            retained = "retained" if channel.retained else ""
            address = re.sub(r"\{(?:resource_)?(\w+)\}", lambda match: match[1].upper(), f"sedna/{channel.address}")
            head = f"{address:52} {channel.sender:>8} → {channel.receiver:8} {retained:8}"
            print_lines(fold(head, channel.says))
        return
    from lc_events.asyncapi.document import documents

    for name, text in documents().items():
        file = export / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    typer.echo(f"written to {export}")
