"""Why it came so, and what would have been: `why`, `what-if`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from lc_events.cli.output import Format, print_json
from lc_events.cli.reading import Config, Job, Output, Store, open_archive, read_moment
from lc_events.printable import printable

__all__ = ["family"]

family = typer.Typer()


@family.command()
def why(
    job: Job,
    *,
    time: Annotated[
        str | None, typer.Option("--time", metavar="T", help="At this time, not now: RFC 3339, 2h (ago), 03:00.")
    ] = None,
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """Say why a job did or did not train, evaluate, deploy."""
    from lc_events.application.audit.why import why as explained
    from lc_events.cli.described import described
    from lc_events.cli.output import print_lines
    from lc_events.controller.clock import stamp

    moment = read_moment(time)
    with open_archive(store, config) as archive:
        answer = explained(archive, archive.find(job), now=stamp(datetime.now(UTC)), time=moment)
    if output is Format.TABLE:
        typer.echo(f"{printable(answer.sentence)}\n")
        print_lines(described(answer.facts))
    else:
        print_json(answer.to_json(), output)
