"""Where jobs stand, now and then: `jobs`, `show`, `at`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    """List all jobs, one line each, deleted ones too."""
    import orjson

    with open_archive(store, config) as archive:
        states = list(archive.states())
        views = [archive.view(state) for state in states]
        lost = [_given_up(archive, state) for state in states] if output is Format.TABLE else []
    if output is not Format.TABLE:
        print_list(map(orjson.dumps, views), output)
        return
    last = "WAITS FOR" if views and "verdict" not in views[0] else "VERDICT"
    titles = ("JOB", "NODE", "STAGE", "ROUND", "VERSION", "UPDATED", last)
    print_lines(table(titles, [_line(view, words) for view, words in zip(views, lost, strict=True)]))


def _given_up(archive: Archive[Any], state: Folded) -> str:
    from lc_events.application.given_up import given_up

    final = given_up(archive.journal, state.stream, until=state.version)
    return "" if final is None else f"; {final.stage} of round {final.round} was given up"


def _line(view: JsonObject, given_up: str) -> tuple[Any, ...]:
    from lc_events.cli.moments import show_time

    verdict = view.get("verdict")
    detail = verdict.get("detail") if isinstance(verdict, Mapping) else view.get("waits_for")
    updated = show_time(str(view["updated"]), zone())[:19]
    return _job(view), view["node"], _stage(view), view["round"], view["version"], updated, f"{detail or '-'}{given_up}"


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
        view = archive.view(archive.state(archive.find(job)))
    _print_state(view, output)


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
        view = archive.view(archive.state(stream, version))
    _print_state(view, output)


def _clock_went_back(version: int, later: tuple[int, ...]) -> str:
    named = f"version {later[0]}" if len(later) == 1 else f"{len(later)} versions, {later[0]} to {later[-1]},"
    says = "says" if len(later) == 1 else "say"
    return (
        f"lc-events: the clock went back: {named} before version {version} {says} a later time; "
        "what counts is the order of versions"
    )


def _print_state(view: JsonObject, form: Format) -> None:
    if form is Format.TABLE:
        print_lines(described(view))
    else:
        print_json(view, form)
