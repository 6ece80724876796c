"""The page: head, pictures, rounds, provenance, what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.resources import files

from lc_events.application.audit.verify import Checked
from lc_events.domain.arrivals import Records
from lc_events.domain.job import Failure
from lc_events.domain.views import verdict_detail
from lc_events.messages.json import JsonObject
from lc_events.report.charts import samples_chart, timeline
from lc_events.report.markup import element, text
from lc_events.report.story import Round, Story

__all__ = ["page"]

_MOST_LINES = 500

Show = Callable[[datetime], str]


def page(story: Story, checked: Checked, *, node: str, zone: str, show: Show) -> str:
    """One self-contained HTML document; times are shown by `show`, wall clock in `zone`."""
    name = f"{story.state.namespace}/{story.state.name}"
    body = "".join(
        (
            element("h1", text(name), " ", element("small", text(f"on {node}"))),
            _summary(story, checked, show),
            _section("Stages", timeline(story, show), _legend()),
            _section("Samples", samples_chart(story, show), _samples_legend()),
            _section("Rounds", _rounds(story.rounds, show)),
            _section("Provenance", _provenance(story.rounds)),
            _section("What happened", _lines(story, show)),
            element("footer", text(f"Times are wall clock in {zone}. Ticks stand as dots, not as lines.")),
        )
    )
    style = (files("lc_events.report") / "style.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        + element("title", text(f"{name}: lc-events report"))
        + element("style", style)
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body><main>{body}</main></body></html>\n'


def _section(title: str, *content: str) -> str:
    return element("section", element("h2", text(title)), *content)


def _summary(story: Story, checked: Checked, show: Show) -> str:
    state = story.state
    verdict = "none yet" if state.verdict is None else f"{state.verdict.reason}: {verdict_detail(state.verdict)}"
    stage = "no stage yet" if state.stage is None else f"{state.stage}/{state.type}"
    stands = "deleted" if state.deleted else f"{stage}, round {state.round}"
    chain = (
        f"sound up to version {checked.version}, head {checked.hash[:12]}"
        if checked.fault is None
        else f"BROKEN at version {checked.version}: {checked.fault}"
    )
    facts = [
        ("stands at", stands),
        ("last verdict", verdict),
        ("samples", f"{state.seen} seen, {state.train_total} to train, {state.eval_total} to evaluate"),
        ("history", f"{state.version} events, {show(story.first)} to {show(story.last)}")
        if story.first and story.last
        else ("history", "empty"),
        ("ticks", f"{state.ticks}"),
        ("chain", chain),
    ]
    if state.intent is not None and state.failure is not None:
        facts.append(("fails, and is tried again", _failing(state.intent.stage, state.failure, show)))
    rows = "".join(
        element("dt", text(name)) + element("dd", text(value), class_="broken" if value.startswith("BROKEN") else None)
        for name, value in facts
    )
    return element("dl", rows)


def _failing(stage: str, failure: Failure, show: Show) -> str:
    return f"{stage}, since {show(datetime.fromisoformat(failure.since))}: {failure.error}"


def _rounds(rounds: Sequence[Round], show: Show) -> str:
    if not rounds:
        return element("p", "No training was triggered yet.")
    metrics = sorted({(kind, metric) for each in rounds for kind, values in each.metrics.items() for metric in values})
    titles = [
        "round",
        "triggered",
        "train samples",
        "eval samples",
        *(f"{kind} {metric}" for kind, metric in metrics),
        "",
    ]
    rows = []
    for each in rounds:
        values = [each.metrics.get(kind, {}).get(metric) for kind, metric in metrics]
        rows.append(
            [
                _named(each),
                show(each.time),
                f"{each.samples}",
                _records(each.eval),
                *("" if value is None else f"{value:.4g}" for value in values),
                each.failed or ("deployed" if each.model is not None else ""),
            ]
        )
    return _table(titles, rows)


def _named(round_: Round) -> str:
    """Each life of a name counts its rounds from 1."""
    return f"{round_.number}" if round_.generation == 1 else f"{round_.number} of generation {round_.generation}"


def _records(file: JsonObject | None) -> str:
    return "" if file is None else str(file.get("records", ""))


def _provenance(rounds: Sequence[Round]) -> str:
    """Which data made which model: record numbers of the dataset's file from 0, hashes, files."""
    titles = ["round", "records (dataset file:first-last)", "train file", "eval file", "deployed model"]
    rows = [
        [_named(each), ", ".join(map(_range, each.records)), *map(_file, (each.train, each.eval, each.model))]
        for each in rounds
    ]
    return _table(titles, rows) if rows else element("p", "Nothing was written yet.")


def _range(records: Records) -> str:
    return f"{records.dataset} {records.epoch}:{records.rows[0]}-{records.rows[1] - 1}"


def _file(file: JsonObject | None) -> str:
    return "" if file is None else f"{file['url']} ({file['size']} bytes, sha256 {str(file['sha256'])[:16]}…)"


def _lines(story: Story, show: Show) -> str:
    left_out = len(story.lines) - _MOST_LINES
    rows = [[f"{version}", show(time), name, words] for version, time, name, words in story.lines[-_MOST_LINES:]]
    note = (
        element("p", text(f"{left_out} earlier events are left out; `lc-events history` has all."))
        if left_out > 0
        else ""
    )
    return note + element("div", _table(["version", "time", "event", ""], rows), class_="events")


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = element("tr", *(element("th", text(title)) for title in titles))
    body = "".join(element("tr", *(element("td", text(cell)) for cell in row)) for row in rows)
    return element("div", element("table", element("thead", head), element("tbody", body)), class_="wide")


def _legend() -> str:
    types = ("waiting", "ready", "starting", "running", "completed", "failed")
    return element("p", *(element("span", text(name), class_=f"key {name}") for name in types), class_="legend")


def _samples_legend() -> str:
    words = "Line: pending train samples. Dashed: threshold. Dots: verdicts, large where the trigger fired."
    return element("p", text(words), class_="legend")
