"""Why something happened, and what would have happened under another rule: `why`, `what-if`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from lc_events.cli.output import Format, print_json, print_lines, table
from lc_events.cli.reading import Config, Job, Output, Store, open_archive, read_moment, zone
from lc_events.errors import UsageError
from lc_events.printable import printable

if TYPE_CHECKING:
    from lc_events.application.audit.other_course import Round
    from lc_events.application.audit.what_if import Outcome

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
    from lc_events.domain.stamp import stamp

    moment = read_moment(time)
    with open_archive(store, config) as archive:
        answer = explained(archive, archive.find(job), now=stamp(datetime.now(UTC)), time=moment)
    if output is Format.TABLE:
        typer.echo(f"{printable(answer.sentence)}\n")
        print_lines(described(answer.facts))
    else:
        print_json(answer.to_json(), output)


@family.command("what-if")
def what_if(
    job: Job,
    *,
    threshold: Annotated[float | None, typer.Option(metavar="N", help="Compare with this number.")] = None,
    operator: Annotated[
        str | None, typer.Option(metavar="OP", help="Compare by this: gt ge eq ne le lt, or > >= …")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="A-B", help="Train only then: 01:00-05:00; none: at any time.")
    ] = None,
    train_prob: Annotated[float | None, typer.Option(metavar="P", help="This share of the samples trains.")] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", metavar="STAGE=DURATION", help="Let a stage last so long, not as recorded: Train=20m."),
    ] = None,
    store: Store = None,
    config: Config = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which rounds there would have been under another rule; nothing is written."""
    from lc_events.application.audit.controller import require_job_of_controller
    from lc_events.application.audit.other_rule import OtherRule
    from lc_events.application.audit.what_if import what_if as decided

    rule = OtherRule(threshold, operator, window, train_prob)
    if rule.is_empty:
        raise UsageError("what-if needs another rule: give --threshold, --operator, --window or --train-prob")
    told = dict(map(_stage_time, stage or ()))
    with open_archive(store, config) as archive:
        stream = archive.find(job)
        require_job_of_controller(archive.kind, stream, "what-if")
        outcome = decided(stream, list(archive.journal.stream(stream)), rule, told=told)
    if output is Format.TABLE:
        print_lines(_side_by_side(outcome))
    else:
        print_json(outcome.to_json(), output)


def _stage_time(text: str) -> tuple[str, timedelta]:
    from lc_events.cli.moments import read_duration

    stage, _, duration = text.partition("=")
    if stage not in ("Train", "Eval", "Deploy") or not duration:
        raise UsageError(f"--stage {text!r} is not STAGE=DURATION with a stage Train, Eval or Deploy, as Train=20m")
    return stage, read_duration(duration)


def _side_by_side(outcome: Outcome) -> Iterator[str]:
    from lc_events.cli.moments import show_time

    local = zone()

    def cells(rounds: Sequence[Round], number: int) -> tuple[str, str]:
        if number >= len(rounds):
            return "-", "-"
        return show_time(rounds[number].time, local)[:19], str(rounds[number].samples)

    count = max(len(outcome.recorded), len(outcome.what_if))
    both = [
        (
            (outcome.what_if if number < len(outcome.what_if) else outcome.recorded)[number].round,
            *cells(outcome.recorded, number),
            *cells(outcome.what_if, number),
        )
        for number in range(count)
    ]
    yield from table(("ROUND", "RECORDED", "SAMPLES", "WHAT IF", "SAMPLES"), both)
    yield ""
    if outcome.parted_at is None:
        yield "Nothing would have been different."
    else:
        yield f"The two part at version {outcome.parted_at}."
        yield from (f"Note: {printable(note)}." for note in outcome.notes)
