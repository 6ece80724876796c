"""Whatever a job may live through: what its history proves does not depend on it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given as for_any
from hypothesis import settings
from hypothesis import strategies as st
from support.given import STREAM, through_json
from support.stores import stored
from unit.domain.test_any_sequence import lived, relentless, sequences

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.deciding import follow_controller
from lc_events.application.audit.other_rule import OtherRule
from lc_events.application.audit.what_if import what_if
from lc_events.application.audit.why import why
from lc_events.application.journal import open_journal


@settings(relentless, max_examples=60)
@for_any(sequences)
def test_every_decision_follows_from_the_facts_recorded_before_it(steps: list[Any]):
    device = lived(steps)
    recorded = [through_json(event) for event in device.events]
    notes: list[str] = []

    followed = list(follow_controller(STREAM, recorded, notes))

    assert followed == recorded
    assert notes == []


@settings(relentless, max_examples=40)
@for_any(sequences)
def test_no_other_rule_gives_what_was_recorded(steps: list[Any]):
    recorded = [through_json(event) for event in lived(steps).events]

    outcome = what_if(STREAM, recorded, OtherRule())

    assert outcome.what_if == outcome.recorded
    assert outcome.parted_at is None


@settings(relentless, max_examples=40)
@for_any(sequences, st.sampled_from([0, 2, 7, 1000]), st.sampled_from(["none", "00:00-24:00", "22:00-01:00"]))
def test_any_other_rule_parts_where_its_rounds_do(steps: list[Any], threshold: float, window: str):
    recorded = [through_json(event) for event in lived(steps).events]

    outcome = what_if(STREAM, recorded, OtherRule(threshold=threshold, window=window, operator=">="))

    if outcome.parted_at is None:
        assert outcome.what_if == outcome.recorded
    else:
        before = [r for r in outcome.recorded if r.version is not None and r.version < outcome.parted_at]
        assert outcome.what_if[: len(before)] == before


@settings(relentless, max_examples=25)
@for_any(sequences)
def test_at_any_moment_there_is_an_answer_to_why(steps: list[Any]):
    device = lived(steps)
    with TemporaryDirectory() as folder:
        path = stored(Path(folder, "events.db"), device.events)
        archive = Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")
        for time in {event.time for event in device.events}:
            answer = why(archive, STREAM, now=time, time=time)
            assert answer.sentence.endswith(".")
            assert answer.facts["stage"] != "Train" or {"metric", "value", "operator", "threshold", "window"} <= set(
                answer.facts
            )
        archive.journal.close()
