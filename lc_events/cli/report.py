"""A history as a page to look at: `report`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.cli.reading import Config, Job, Store, open_archive, zone
from lc_events.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from lc_events.application.audit.verify import Checked
    from lc_events.report.story import Story

__all__ = ["family"]

family = typer.Typer()


@family.command()
def report(
    job: Job,
    *,
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The HTML file to write.")],
    file: Annotated[
        Path | None, typer.Option("--file", metavar="EXPORT", help="Show an export in place of a store.")
    ] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Write one self-contained HTML page of a job's history: stages, samples, verdicts, rounds, provenance."""
    from lc_events.cli.moments import show_time
    from lc_events.report.page import page

    if file is not None and store is not None:
        raise UsageError("--file shows an export, --store a store: give one of them")
    local = zone()
    story, checked, node = _of_store(job, store, config) if file is None else _of_export(job, file)

    def show(moment: datetime) -> str:
        return show_time(moment.isoformat(), local)[:19]

    try:
        output.write_text(page(story, checked, node=node, zone=local, show=show), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    typer.echo(f"written to {output}")


def _of_store(job: str, store: str | None, config: Path | None) -> tuple[Story, Checked, str]:
    from lc_events.application.audit.controller import require_job_of_controller
    from lc_events.application.audit.verify import check_in
    from lc_events.report.story import read_story

    with open_archive(store, config) as archive:
        stream = archive.find(job)
        require_job_of_controller(archive.kind, stream, "report")
        story = read_story(stream, archive.walk(stream), archive.journal.decode)
        return story, check_in(archive, stream, ()), archive.node


def _of_export(job: str, file: Path) -> tuple[Story, Checked, str]:
    from lc_events.application.audit.controller import require_job_of_controller
    from lc_events.application.audit.names import job_stream
    from lc_events.application.audit.verify import check_export
    from lc_events.application.broken import DEFECTS
    from lc_events.application.mapper import EventMapper
    from lc_events.cli.exports import read_export_file, store_kind
    from lc_events.cli.verify import fail_if_broken
    from lc_events.report.story import read_story

    stream = job_stream(job)
    wanted = [each for each in read_export_file(file) if each.row.stream == stream]
    if not wanted:
        raise NotFoundError(f"there is no {stream} in {file}")
    kind = store_kind(wanted)
    require_job_of_controller(kind, stream, "report")
    mapper = EventMapper(kind.registry)
    rows = [each.row for each in wanted]
    found = check_export(wanted, kind=kind, heads={})
    try:
        story = read_story(stream, rows, lambda row: mapper.decode(row.stream, row.version, row.name, row.state))
    except DEFECTS:
        fail_if_broken(found, None)
        raise
    return story, found[0], wanted[0].node
