"""What commands that read a store share: which store, whose history, which zone. They never write to a store."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from lc_events.cli.output import Format

if TYPE_CHECKING:
    from lc_events.application.audit.archive import Archive
    from lc_events.application.journal import Journal

__all__ = [
    "Config",
    "Job",
    "OneJob",
    "Output",
    "Store",
    "open_archive",
    "opened",
    "read_moment",
    "setting",
    "store_path",
    "zone",
]

Job = Annotated[str, typer.Argument(metavar="JOB", help="NAMESPACE/NAME, or NAME in the namespace default.")]
OneJob = Annotated[
    str | None, typer.Argument(metavar="[JOB]", help="NAMESPACE/NAME; without it, all that the store holds.")
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="STORE", help="Event store: sqlite:///FILE, a path, a state folder. [LC_STORE, LC_STATE_DIR]"
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML file that says where the store is. [LC_CONFIG]")
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print.")]


@contextmanager
def open_archive(store: str | None, config: Path | None) -> Iterator[Archive[Any]]:
    """Open the store that flags and settings name, a local controller's or a global manager's.

    Raises UsageError for a setting that is wrong, StoreError if there is no store or it cannot be read, IntegrityError
    if reading failed on a history that is broken.
    """
    from eventsourcing.persistence import PersistenceError

    from lc_events.application.broken import DEFECTS
    from lc_events.application.journal import open_journal, unusable
    from lc_events.domain.events import LC_EVENTS, Registry

    path = store_path(store, config)
    journal = open_journal(path, Registry(LC_EVENTS))
    try:
        archive = _archive(journal, config)
        try:
            yield archive
        except DEFECTS:
            _fail_if_broken(archive)
            raise
    except (PersistenceError, sqlite3.Error) as error:
        raise unusable(path, "read", error) from error
    finally:
        journal.close()


def _fail_if_broken(archive: Archive[Any]) -> None:
    """Raise BrokenError with the first fault of the store: what a reader stumbled over is then no fault of ours."""
    from lc_events.application.audit.verify import check_store
    from lc_events.application.broken import BrokenError

    for checked in check_store(archive, {}):
        if checked.fault is not None:
            raise BrokenError(checked.stream, checked.version, checked.fault)


def store_path(store: str | None, config: Path | None) -> Path:
    """The file of the store that flags and settings name, whether it is there or not."""
    from lc_events.settings.files import reading_store

    return reading_store(store, _config(config))


def _config(named: Path | None) -> Path | None:
    variable = os.environ.get("LC_CONFIG")
    return named or (Path(variable) if variable else None)


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """A file to read, `-` being standard input; NotFoundError if it cannot be opened."""
    if file == Path("-"):
        yield sys.stdin.buffer
        return
    try:
        content = file.open("rb")
    except OSError as error:
        from lc_events.errors import NotFoundError

        raise NotFoundError(f"{file}: {error.strerror}") from None
    with content:
        yield content


def _archive(journal: Journal, config: Path | None) -> Archive[Any]:
    from lc_events.application.audit.archive import Archive

    first = journal.rows.rows(limit=1)
    if first and first[0].name == "ResourceApplied":
        from lc_events.cli.global_manager import gm_archive

        return gm_archive(journal)
    from lc_events.application.audit.controller import CONTROLLER

    return Archive(journal, CONTROLLER, journal.rows.about("node") or _node(config))


def _node(config: Path | None) -> str:
    """The node that `run` would take from the settings, for a store that does not say whose it is."""
    return setting("node", config) or os.environ.get("NODENAME") or socket.gethostname()


def setting(name: str, config: Path | None) -> str | None:
    """A setting of the local controller, unchecked: from the environment, else from the TOML file."""
    if told := os.environ.get(f"LC_{name.upper()}"):
        return told
    from lc_events.settings.files import read_config

    file = _config(config)
    value = read_config(file).get(name) if file else None
    return None if value is None else str(value)


def zone() -> str:
    """The zone of times without an offset, and of those in tables: LC_TIMEZONE, else the system's."""
    from lc_events.errors import UsageError
    from lc_events.settings.timezone import is_zone, system_zone

    named = os.environ.get("LC_TIMEZONE")
    if named and not is_zone(named):
        raise UsageError(f"LC_TIMEZONE is {named!r}, but must be an IANA time zone, such as Europe/Berlin or UTC")
    return named or system_zone()


def read_moment(text: str | None) -> str | None:
    """A time as typed, in the form that events carry; None stays None. Raises UsageError."""
    from lc_events.cli.moments import read_time
    from lc_events.domain.stamp import stamp

    return None if text is None else stamp(read_time(text, now=datetime.now(UTC), zone=zone()))
