"""Histories as files: `export`, `import`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_events.cli.output import Format, print_list
from lc_events.cli.reading import Config, OneJob, Store, open_archive, opened, store_path
from lc_events.errors import ConflictError, LcError, UsageError

if TYPE_CHECKING:
    from lc_events.application.audit.archive import StoreKind
    from lc_events.application.audit.exports import ExportedRow

__all__ = ["family", "read_export_file", "store_kind"]

family = typer.Typer()

Export = Annotated[Path, typer.Argument(metavar="FILE", help="An export; - is standard input.")]
_STANDARD = Path("-")


@family.command()
def export(
    job: OneJob = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is the terminal.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Write a history with its stored bytes, one event a line; `verify --file` checks it anywhere."""
    from lc_events.application.audit.exports import export_lines

    with open_archive(store, config) as archive:
        stream = None if job is None else archive.find(job)
        with closing(archive.journal.rows.scan()) as scanned:
            rows = scanned if stream is None else archive.rows(stream)
            with closing(export_lines(archive.node, rows)) as lines:
                if output == _STANDARD:
                    print_list(lines, Format.JSONL)
                else:
                    _write(output, lines, force=force)


def _write(path: Path, lines: Iterator[bytes], *, force: bool) -> None:
    """Write under another name until the file is whole, so that nobody takes half of it for an export."""
    if path.exists():
        if not force:
            raise ConflictError(f"{path} exists; --force writes over it")
        if not path.is_file():
            raise UsageError(f"{path} is not a file; to print the export, give -")
    part = path.with_name(f".lc-events-{secrets.token_hex(8)}")
    try:
        with part.open("xb") as file:
            file.writelines(line + b"\n" for line in lines)
        part.replace(path)
    except OSError as error:
        raise LcError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


@family.command("import")
def import_(file: Export, store: Store = None, config: Config = None) -> None:
    """Take an export into a store that has none of its streams: same state, same chain."""
    from lc_events.application.audit.names import short_name
    from lc_events.application.audit.verify import check_export
    from lc_events.application.importing import import_rows
    from lc_events.application.journal import open_journal
    from lc_events.cli.verify import fail_if_broken
    from lc_events.controller.outbox import POSITION
    from lc_events.runtime.lock import FolderLock

    exported = read_export_file(file)
    kind = store_kind(exported)
    found = check_export(exported, kind=kind, heads={})
    fail_if_broken(found, None)
    path = store_path(store, config)
    lock = FolderLock(path.parent, "--store")
    try:
        journal = open_journal(path, kind.registry, write=True)
        import_rows(journal, exported[0].node, [each.row for each in exported], readers=[POSITION])
        journal.close()
    finally:
        lock.release()
    for checked in found:
        typer.echo(f"{short_name(checked.stream)}: {checked.version} events")


def read_export_file(file: Path) -> list[ExportedRow]:
    """The rows of an export file, `-` being standard input.

    Raises NotFoundError if it cannot be opened, UsageError if it is not an export.
    """
    from lc_events.application.audit.exports import read_export

    with opened(file) as lines:
        exported = list(read_export(lines))
    if not exported:
        raise UsageError(f"{file} is empty, so it is not an export")
    return exported


def store_kind(exported: Sequence[ExportedRow]) -> StoreKind[Any]:
    """Whose store these came from: a global manager's or a local controller's."""
    from lc_events.application.audit.controller import CONTROLLER
    from lc_events.cli.global_manager import GLOBAL_MANAGER

    return GLOBAL_MANAGER if exported[0].node == "gm" else CONTROLLER
