"""The entry point: the commands, and the one place where errors become exit codes (CONTRACT section 8)."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events import __version__
from lc_events.cli import (
    doctor,
    exports,
    history,
    jobs,
    operate,
    provenance,
    quarantine,
    report,
    run,
    tail,
    topics,
    verify,
    why,
)
from lc_events.errors import LcError
from lc_events.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

_OWN_LOGGER = logging.getLogger("lc_events")

INTERRUPTED = 130
"""What a shell reports of a program that SIGINT ended."""

app = typer.Typer(
    name="lc-events",
    help="Sedna's local controller for lifelong-learning jobs, event-sourced, over MQTT.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: no colours to switch off, and rich need not be imported
    context_settings={"help_option_names": ["-h", "--help"]},
)


for family in (
    run.family,
    operate.family,
    jobs.family,
    history.family,
    why.family,
    provenance.family,
    verify.family,
    exports.family,
    report.family,
    quarantine.family,
    tail.family,
    doctor.family,
    topics.family,
):
    app.add_typer(family)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lc-events {__version__}")
        raise typer.Exit


@app.callback()
def _lc_events(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main(args: Sequence[str] | None = None, *, commands: typer.Typer = app) -> None:
    """Run a command line (the process's by default) and end with the exit code of what happened."""
    try:
        commands(args=args, prog_name="lc-events")
    except LcError as error:
        if os.environ.get("LC_LOG", "").lower() == "debug" or _OWN_LOGGER.isEnabledFor(logging.DEBUG):
            traceback.print_exception(error)
        sys.stderr.write(f"lc-events: {printable(str(error))}\n")
        sys.exit(error.exit_code)
    except OSError as error:
        if _OWN_LOGGER.isEnabledFor(logging.DEBUG):
            traceback.print_exception(error)
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"lc-events: {printable(where)}{error.strerror or error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
