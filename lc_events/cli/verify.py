"""The proof: `verify`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.cli.output import Format, print_json, print_lines, table
from lc_events.cli.reading import Config, OneJob, Output, Store, open_archive, opened
from lc_events.errors import IntegrityError, NotFoundError, UsageError

if TYPE_CHECKING:
    from lc_events.application.audit.verify import Checked, Heads

__all__ = ["fail_if_any", "fail_if_broken", "family"]

family = typer.Typer()


@family.command()
def verify(
    job: OneJob = None,
    *,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="EXPORT", help="Check an export in place of a store.")
    ] = None,
    head: Annotated[
        Path | None,
        typer.Option(
            "--head", metavar="FILE", help="Heads seen elsewhere: TOPIC PAYLOAD lines, as mosquitto_sub -v prints them."
        ),
    ] = None,
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """Check the chain, heads seen elsewhere, and that every decision follows from its facts."""
    if file is not None and store is not None:
        raise UsageError("--file checks an export, --store a store: give one of them")
    stream, fault = None, None
    if file is not None:
        stream, found = _check_export(file, job, head)
    else:
        with open_archive(store, config) as archive:
            from lc_events.application.audit.verify import check_in, check_log, check_store

            stream = None if job is None else archive.find(job)
            heads = _heads(head, archive.node, stream)
            if stream is not None:
                found = [check_in(archive, stream, heads.get(stream, ()))]
            else:
                found, fault = check_store(archive, heads), check_log(archive.journal.rows)
    _print_checked(found, fault, stream, output)
    fail_if_broken(found, fault)


def _check_export(file: Path, job: str | None, head: Path | None) -> tuple[str | None, list[Checked]]:
    from lc_events.application.audit.names import job_stream
    from lc_events.application.audit.verify import check_export
    from lc_events.cli.exports import read_export_file, store_kind

    exported = read_export_file(file)
    stream = None if job is None else job_stream(job)
    if stream is not None and all(each.row.stream != stream for each in exported):
        raise NotFoundError(f"there is no {stream} in {file}")
    wanted = [each for each in exported if stream in (None, each.row.stream)]
    heads = _heads(head, wanted[0].node, stream)
    if stream is not None:
        heads = {of: seen for of, seen in heads.items() if of == stream}
    return stream, check_export(wanted, kind=store_kind(wanted), heads=heads)


def _heads(file: Path | None, node: str, stream: str | None) -> Heads:
    if file is None:
        return {}
    from lc_events.application.audit.heads import heads_of, read_heads

    with opened(file) as lines:
        seen = read_heads(line.decode(errors="replace") for line in lines)
        found, others = heads_of(seen, node=node, stream=stream)
    if others:
        typer.echo(
            f"lc-events: heads in {file} that are of other nodes than {node}, and are not compared: {others}", err=True
        )
    return found


def _print_checked(found: Collection[Checked], fault: str | None, stream: str | None, form: Format) -> None:
    if form is Format.TABLE:
        print_lines(_report(found, fault))
    elif stream is not None:
        print_json(next(iter(found)).to_json(), form)
    else:
        wrong = {} if fault is None else {"error": fault}
        is_ok = fault is None and all(checked.ok for checked in found)
        streams = [{"stream": checked.stream, **checked.to_json()} for checked in found]
        print_json({"ok": is_ok, **wrong, "streams": streams}, form)


def _report(found: Collection[Checked], fault: str | None) -> Iterator[str]:
    from lc_events.application.audit.names import short_name

    rows = [
        (short_name(c.stream), "ok" if c.ok else "BROKEN", c.version, c.hash[:12] if c.ok else c.fault) for c in found
    ]
    yield from table(("STREAM", "RESULT", "VERSION", "HASH OR FAULT"), rows)
    for checked in found:
        yield from (f"note: {short_name(checked.stream)}: {note}" for note in checked.notes)
    if fault is not None:
        yield f"BROKEN: {fault}"


def fail_if_broken(found: Collection[Checked], fault: str | None) -> None:
    """Raise IntegrityError that names the first broken versions, if there are any."""
    broken = [f"{checked.stream} version {checked.version}: {checked.fault}" for checked in found if not checked.ok]
    fail_if_any([*broken, *([] if fault is None else [fault])])


def fail_if_any(faults: Sequence[str]) -> None:
    """Raise IntegrityError that names the first of these faults, if there are any."""
    if faults:
        raise IntegrityError("; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else ""))
