"""What happened to a job, and what it changed: `history`, `diff`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_events.cli.output import Format, fold, print_json, print_lines, print_list, table
from lc_events.cli.reading import Config, Job, Output, Store, open_archive, read_moment, zone
from lc_events.errors import UsageError
from lc_events.printable import printable

if TYPE_CHECKING:
    from lc_events.application.audit.archive import Archive
    from lc_events.application.audit.difference import Change
    from lc_events.application.audit.travel import Span

__all__ = ["family"]

family = typer.Typer()

_MOST_NAMED, _MOST_TEXT = 3, 60
_NAME_WIDTH = len("GlobalManagerMessageReceived")


@family.command()
def history(
    job: Job,
    *,
    first: Annotated[int | None, typer.Option("--from", metavar="V", min=1, help="From this version on.")] = None,
    last: Annotated[int | None, typer.Option("--to", metavar="V", min=1, help="Up to this version.")] = None,
    since: Annotated[str | None, typer.Option(metavar="T", help="Not before this time: RFC 3339, 2h (ago).")] = None,
    until: Annotated[str | None, typer.Option(metavar="T", help="Not after this time.")] = None,
    names: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="Only these events; may be given again.")
    ] = None,
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """List a job's events, one line each; as json, they are CloudEvents."""
    from lc_events.application.audit.names import short_name
    from lc_events.application.audit.travel import Span
    from lc_events.application.audit.travel import history as events_of
    from lc_events.application.cloud_events import cloud_event

    with open_archive(store, config) as archive:
        stream = archive.find(job)
        for name in names or ():
            _check_name(archive, name)
        newest = archive.journal.head(stream).version
        if first is not None and first > newest:
            typer.echo(f"lc-events: {short_name(stream)} ends at version {newest}", err=True)
        span = Span(first, last, read_moment(since), read_moment(until), names or ())
        if output is Format.TABLE:
            print_lines(_table(archive, stream, span))
        else:
            found = events_of(archive, stream, span)
            print_list((cloud_event(archive.node, row, previous) for row, previous in found), output)


def _check_name(archive: Archive[Any], name: str) -> None:
    known = archive.journal.registry
    if name not in known:
        raise UsageError(f"--type {name!r} is not an event of this store; its events are {', '.join(sorted(known))}")


def _table(archive: Archive[Any], stream: str, span: Span) -> Iterator[str]:
    """One line for each event: version, local time, what, why; and a line where another life of the name begins."""
    from lc_events.application.audit.narration import narrate
    from lc_events.application.audit.travel import history as events_of
    from lc_events.cli.moments import show_time

    local = zone()
    found = [row for row, _ in events_of(archive, stream, span)]
    if not found:
        return
    state = archive.state(stream, found[0].version - 1) if found[0].version > 1 else archive.kind.fresh(stream)
    wanted = {row.version for row in found}
    width = len(str(found[-1].version))
    for row in archive.rows(stream, first=found[0].version, last=found[-1].version):
        event, generation = archive.journal.decode(row), state.generation
        state = archive.kind.evolve(state, event)
        if row.version in wanted:
            if generation and state.generation != generation:
                yield f"{'':>{width}}  generation {state.generation}"
            why = printable(narrate(event, state))
            yield from fold(f"{row.version:>{width}}  {show_time(event.time, local)}  {row.name:{_NAME_WIDTH}}", why)


@family.command()
def diff(
    job: Job,
    *,
    first: Annotated[int, typer.Option("--from", metavar="V", min=0, help="After this version; 0: before the first.")],
    last: Annotated[int, typer.Option("--to", metavar="V", min=1, help="After this version.")],
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what changed between two versions, field by field, and which events did it."""
    import orjson

    from lc_events.application.audit.difference import difference

    with open_archive(store, config) as archive:
        changes = difference(archive, archive.find(job), first, last)
    if output is Format.TABLE:
        print_lines(table(("FIELD", "FROM", "TO", "BY"), [_changed(change) for change in changes]))
    elif output is Format.JSON:
        print_json({"from": first, "to": last, "changes": [change.to_json() for change in changes]}, output)
    else:
        print_list((orjson.dumps(change.to_json()) for change in changes), output)


def _changed(change: Change) -> tuple[str, ...]:
    by = [f"{each.version} {each.name}" for each in change.by]
    if len(by) > _MOST_NAMED:
        by[1:-1] = [f"{len(by) - 2} more"]
    return change.field, _short(change.before), _short(change.after), ", ".join(by)


def _short(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
