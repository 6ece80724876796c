"""Where jobs stand, now and then: `jobs`, `show`, `at`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_events.application.broken import BrokenError
from lc_events.cli.described import described
from lc_events.cli.output import Format, print_json, print_lines, print_list, table
from lc_events.cli.reading import Config, Job, Output, Store, open_archive, read_moment, zone
from lc_events.errors import UsageError

if TYPE_CHECKING:
    from lc_events.application.audit.archive import Archive, Folded
    from lc_events.messages.json import JsonObject

__all__ = ["family"]

family = typer.Typer()


@family.command()
def jobs(store: Store = None, config: Config = None, output: Output = Format.TABLE) -> None:
    """List all jobs, one line each, deleted ones too; of one that cannot be read, say where it is broken."""
    import orjson

    from lc_events.cli.verify import fail_if_any

    with open_archive(store, config) as archive:
        found = list(archive.states())
        if output is Format.TABLE:
            print_lines(_listed(archive, found))
        else:
            views = [archive.view(state) for state in found if not isinstance(state, BrokenError)]
            print_list(map(orjson.dumps, views), output)
    fail_if_any([str(each) for each in found if isinstance(each, BrokenError)])


def _listed(archive: Archive[Any], found: Sequence[Folded | BrokenError]) -> Iterator[str]:
    from lc_events.application.audit.controller import CONTROLLER

    last = "VERDICT" if archive.kind is CONTROLLER else "WAITS FOR"
    titles = ("JOB", "NODE", "STAGE", "ROUND", "VERSION", "UPDATED", last)
    lines = [_broken(archive, each) if isinstance(each, BrokenError) else _line(archive, each) for each in found]
    yield from table(titles, lines)


def _broken(archive: Archive[Any], error: BrokenError) -> tuple[Any, ...]:
    from lc_events.application.audit.controller import CONTROLLER
    from lc_events.application.audit.names import short_name

    node = archive.node if archive.kind is CONTROLLER else None  # a global manager's jobs are on any node
    why = f"version {error.version}: {error.fault}"
    return short_name(error.stream), node, "broken", None, None, None, why


def _line(archive: Archive[Any], state: Folded) -> tuple[Any, ...]:
    from lc_events.application.audit.troubles import troubles

    view = archive.view(state)
    verdict = view.get("verdict")
    detail = verdict.get("detail") if isinstance(verdict, Mapping) else view.get("waits_for")
    words = "; ".join([str(detail or "-"), *troubles(archive, state, _show)])
    return _job(view), view["node"], _stage(view), view["round"], view["version"], _show(str(view["updated"])), words


def _show(time: str) -> str:
    from lc_events.cli.moments import show_time

    return show_time(time, zone())[:19]


def _job(view: JsonObject) -> str:
    return f"{view['namespace']}/{view['name']}"


def _stage(view: JsonObject) -> str:
    if view["deleted"]:
        return "deleted"
    return f"{view['stage']}/{view['type']}" if view["stage"] else "-"


@family.command()
def show(job: Job, store: Store = None, config: Config = None, output: Output = Format.TABLE) -> None:
    """Show the state of one job."""
    with open_archive(store, config) as archive:
        _print_state(archive, archive.state(archive.find(job)), output)


@family.command()
def at(
    job: Job,
    *,
    version: Annotated[int | None, typer.Option("--version", metavar="V", min=1, help="After this version.")] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="T", help="At this time: RFC 3339, 2h (ago), yesterday 03:00.")
    ] = None,
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the state that a job had at a version or a time."""
    from lc_events.application.audit.travel import version_at

    moment = read_moment(time)
    if (version is None) == (moment is None):
        raise UsageError("at needs --version V or --time T, one of the two")
    with open_archive(store, config) as archive:
        stream = archive.find(job)
        if moment is not None:
            version, later = version_at(archive, stream, moment)
            if later:
                typer.echo(_clock_went_back(version, later), err=True)
        state = archive.state(stream, version)
        _print_state(archive, state, output, time=moment or str(archive.view(state)["updated"]))


def _clock_went_back(version: int, later: tuple[int, ...]) -> str:
    named = f"version {later[0]}" if len(later) == 1 else f"{len(later)} versions, {later[0]} to {later[-1]},"
    says = "says" if len(later) == 1 else "say"
    return (
        f"lc-events: the clock went back: {named} before version {version} {says} a later time; "
        "what counts is the order of versions"
    )


def _print_state(archive: Archive[Any], state: Folded, form: Format, *, time: str | None = None) -> None:
    """As a table with its troubles, up to `time` or to now; the JSON is the state alone (CONTRACT section 5)."""
    from lc_events.application.audit.troubles import troubles

    view = archive.view(state)
    if form is not Format.TABLE:
        print_json(view, form)
        return
    print_lines(described(view))
    if found := troubles(archive, state, _show, time=time):
        print_lines(described({"troubles": list(found)}))
