from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from support.given import STREAM, deleted, written
from support.rounds import Rounds, two_rounds

from lc_events.application.audit.other_rule import OtherRule
from lc_events.application.audit.what_if import what_if
from lc_events.domain import events as e
from lc_events.errors import UsageError


def decided(rounds, *, told=None, **rule):
    return what_if(STREAM, rounds.history().events, OtherRule(**rule), told=told)


def shown(rounds):
    """Round, wall clock and samples."""
    return [(r.round, r.time[11:16], r.samples) for r in rounds]


def condition(operator, threshold):
    return {"condition": {"operator": operator, "threshold": threshold, "metric": "num_of_samples"}}


def test_the_recorded_rule_gives_what_was_recorded():
    outcome = decided(two_rounds(), threshold=3, operator=">", train_prob=0.8)

    assert outcome.what_if == outcome.recorded
    assert [r.round for r in outcome.recorded] == [1, 2]
    assert outcome.parted_at is None
    assert outcome.notes == []


def test_a_history_of_older_rules_goes_as_it_went_under_them():
    rounds = Rounds(rules=1).arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Completed", urls=("/output/job1/%2e%2e/m.pkl",))
    outcome = decided(rounds.told("Eval/Waiting"), threshold=3)

    assert len(rounds.history().of(e.EvaluationTriggered)) == 1
    assert outcome.parted_at is None


def test_a_lower_threshold_fires_at_the_fact_that_reaches_it():
    outcome = decided(Rounds().arrive(2).arrive(2).arrive(2), threshold=2)

    assert shown(outcome.what_if) == [(1, "00:03", 3)]
    assert outcome.what_if[0].version == 3
    assert outcome.recorded[0].version == 5
    assert outcome.parted_at == 3


def test_a_higher_threshold_waits_for_more_samples():
    rounds = Rounds().arrive(9).arrive(9).arrive(9)

    outcome = decided(rounds, threshold=20)

    assert shown(outcome.recorded) == [(1, "00:02", 7)]
    assert shown(outcome.what_if) == [(1, "00:04", 21)]
    assert outcome.parted_at == 2


def test_a_threshold_that_is_never_reached_leaves_no_round():
    outcome = decided(two_rounds(), threshold=1000)

    assert outcome.what_if == []
    assert outcome.parted_at == outcome.recorded[0].version - 1


def test_without_a_window_it_fires_when_the_samples_come():
    trigger = {"timer": {"start": "01:00", "end": "05:00"}, **condition(">=", 4)}
    rounds = Rounds(trigger=trigger).arrive(9).wait(90).ticked()

    assert shown(decided(rounds, window="none").recorded) == [(1, "01:33", 7)]
    assert shown(decided(rounds, window="none").what_if) == [(1, "00:02", 7)]


def test_another_window_fires_at_its_opening_although_nothing_was_recorded_then():
    rounds = Rounds(zone="Europe/Berlin").ticked().arrive(9).trained().wait(12 * 60).ticked()

    outcome = decided(rounds, window="03:30-04:00")

    assert shown(outcome.what_if) == [(1, "02:30", 7)]
    assert outcome.what_if[0].version is None


def test_another_share_trains_on_other_samples():
    outcome = decided(Rounds().arrive(10), train_prob=0.5)

    assert shown(outcome.recorded) == [(1, "00:02", 8)]
    assert shown(outcome.what_if) == [(1, "00:02", 5)]
    assert outcome.parted_at == 2


def test_stages_last_as_long_as_recorded_in_the_same_round():
    rounds = Rounds().arrive(3).arrive(3).trained(minutes=30).arrive(9).trained(minutes=5).wait(120).ticked()
    recorded = decided(rounds, threshold=3).recorded

    outcome = decided(rounds, threshold=0)

    first, second = outcome.what_if[:2]
    lasted = datetime.fromisoformat(recorded[1].time) - datetime.fromisoformat(recorded[0].time)
    assert first.time < recorded[0].time
    assert datetime.fromisoformat(second.time) - datetime.fromisoformat(first.time) == lasted - timedelta(minutes=1)
    assert "is unknown" in outcome.notes[0]


def test_stages_last_as_long_as_told():
    rounds = Rounds().arrive(3).arrive(9).trained(minutes=30).arrive(9).wait(600).ticked()
    told = {"Train": timedelta(hours=1), "Eval": timedelta(minutes=10), "Deploy": timedelta(minutes=5)}

    outcome = decided(rounds, threshold=1, told=told)

    assert shown(outcome.what_if) == [(1, "00:02", 2), (2, "01:17", 14)]


def test_where_no_stage_ended_how_it_goes_on_is_unknown():
    outcome = decided(Rounds().arrive(2).arrive(3).arrive(9).arrive(9), threshold=0)

    assert shown(outcome.what_if) == [(1, "00:02", 1)]
    assert outcome.notes[1] == (
        "how it would have gone on after Train of round 1 is unknown: no Train was recorded to its end"
    )


def test_after_a_deletion_the_next_life_begins_as_it_was_recorded():
    rounds = Rounds().arrive(2).arrive(9).trained()
    rounds.then(deleted())
    rounds.conditions.clear()
    rounds.told("Train/Waiting", operation="insert").arrive(9)

    outcome = decided(rounds, threshold=0)

    assert [(r.generation, r.round) for r in outcome.recorded] == [(1, 1), (2, 1)]
    assert outcome.what_if[-1] == outcome.recorded[-1]


def test_a_changed_spec_keeps_the_other_rule():
    rounds = Rounds().arrive(3)
    rounds._job["output_dir"] = "/output/elsewhere"
    rounds.told(operation="update").arrive(9)

    assert decided(rounds, threshold=1000).what_if == []


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ({"operator": "~"}, "operator '~' is not one of"),
        ({"train_prob": 1.5}, "trainProb"),
        ({"window": "1-2"}, "is not a time of day"),
        ({"window": "at night"}, "is not a window"),
        ({"threshold": float("inf")}, "finite"),
    ],
)
def test_a_rule_that_there_cannot_be_is_refused(rule, wrong):
    with pytest.raises(UsageError, match=wrong):
        decided(two_rounds(), **rule)


def test_an_operator_alone_needs_a_condition_that_was_there():
    with pytest.raises(UsageError, match="give --threshold too"):
        decided(Rounds(trigger=None).arrive(9), operator=">")


def test_the_outcome_names_what_the_contract_names():
    outcome = decided(two_rounds(), threshold=1000).to_json()

    assert outcome["what_if"] == []
    assert outcome["parted_at"] == 5
    assert set(outcome["recorded"][0]) == {"round", "time", "version", "samples", "generation"}


def test_the_events_are_left_as_they_were():
    events = two_rounds().history().events
    before = list(events)

    what_if(STREAM, events, OtherRule(threshold=1))

    assert events == before
    assert any(isinstance(event, e.TrainingTriggered) for event in events)


def test_the_same_models_count_under_another_rule():
    rounds = Rounds().open_places("/models").arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Completed", "Eval/Waiting", urls=("/models/m.pkl",))
    rounds.wait().then(written(rounds.time)).told("Eval/Completed", "Train/Waiting", urls=("/models/m.pkl",)).arrive(9)

    assert decided(rounds, threshold=3.5).parted_at is None
    assert [r.round for r in decided(rounds, threshold=3.5).what_if] == [1, 2]
