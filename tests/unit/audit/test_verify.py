from __future__ import annotations

from dataclasses import replace

import pytest
from support.given import STREAM, copied, deleted, facts, given, gm, ticked, written
from support.rounds import Rounds, two_rounds
from support.sedna import condition, output
from support.stores import stored
from support.tampering import Tampered

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.verify import check_in, check_log, check_rows
from lc_events.application.journal import open_journal
from lc_events.application.recorder import Head
from lc_events.domain import events as e


@pytest.fixture
def path(tmp_path):
    """A store with two rounds of one job."""
    return stored(tmp_path / "events.db", two_rounds().history().events)


def opened(path):
    return Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")


def check(path, *heads):
    return check_in(opened(path), STREAM, heads)


def log(path):
    archive = opened(path)
    return check_log(archive.journal.rows)


def version_of(path, event_class, number=0):
    """The version of an event, counted from the first of its class."""
    rows = opened(path).rows(STREAM)
    return [row.version for row in rows if row.name == event_class.__name__][number]


def test_a_sound_history_ends_at_its_head(path):
    head = opened(path).journal.head(STREAM)

    assert check(path, head).to_json() == {"ok": True, "version": head.version, "hash": head.hash}
    assert log(path) is None


@pytest.fixture
def long(tmp_path):
    """A store with 1,200 events of one job."""
    return stored(tmp_path / "long.db", given(gm(condition("Train", "Waiting")), *[ticked()] * 1199).events)


def test_a_long_history_is_checked_piece_by_piece_and_others_are_yielded_to_after_each(long):
    archive, pauses = opened(long), []

    checked = check_in(archive, STREAM, yield_to_others=lambda: pauses.append(archive.journal.head(STREAM)))

    assert checked.to_json() == {"ok": True, "version": 1200, "hash": pauses[0].hash}
    assert len(pauses) == 12


def test_a_long_history_is_not_read_before_it_is_needed(long):
    pauses = []
    walk = opened(long).walk(STREAM, after=100, last=1100, yield_to_others=lambda: pauses.append(None))

    assert [next(walk).version for _ in range(100)] == list(range(101, 201))
    assert pauses == []
    assert [row.version for row in walk] == list(range(201, 1101))
    assert len(pauses) == 10


@pytest.mark.parametrize("version", ["1200x", "5x", "x"])
def test_a_version_that_is_no_number_is_found_and_ends_the_walk(long, version):
    with Tampered(long) as store:
        store.run(f"UPDATE stored_events SET originator_version = '{version}' WHERE originator_version = 1000")

    assert check(long)[1:] == (1000, "", "it is missing: after version 999 comes version 1001", ())
    assert sum(1 for _ in opened(long).walk(STREAM)) >= 1200


@pytest.mark.parametrize("version", [1, 7, -1])
def test_a_changed_byte_is_found_at_its_version(path, version):
    version %= opened(path).journal.head(STREAM).version + 1
    with Tampered(path) as store:
        store.set_state(version, store.state(version).replace(b"2024", b"2025", 1))

    assert check(path)[1:4] == (version, "", mislinked(path, version))


def mislinked(path, version):
    name = opened(path).rows(STREAM, first=version)[0].name
    return f"its stored name {name!r} and bytes do not give its hash: they, or those before, were changed"


def test_a_changed_name_is_found_at_its_version(path):
    with Tampered(path) as store:
        store.run("UPDATE stored_events SET topic = 'JobDeleted' WHERE originator_version = 4")

    assert check(path)[1:4] == (4, "", mislinked(path, 4))


def test_a_changed_version_is_a_missing_one(path):
    with Tampered(path) as store:
        store.run("UPDATE stored_events SET originator_version = 400 WHERE originator_version = 4")

    assert check(path)[1:4] == (4, "", "it is missing: after version 3 comes version 5")


def test_a_removed_event_is_missing(path):
    with Tampered(path) as store:
        store.remove(9)

    assert check(path)[1:4] == (9, "", "it is missing: after version 8 comes version 10")
    assert log(path) == "the log has a hole: event or link number 9 is missing"


def test_a_removed_event_whose_gap_was_closed_breaks_the_chain(path):
    with Tampered(path) as store:
        store.remove(9)
        store.close_gap(9)

    assert check(path)[1:4] == (9, "", mislinked(path, 9))


def test_swapped_events_break_the_chain_at_the_first(path):
    with Tampered(path) as store:
        store.swap(5, 8)

    assert check(path)[1:4] == (5, "", mislinked(path, 5))


def test_a_removed_link_is_found(path):
    with Tampered(path) as store:
        store.run("DELETE FROM chain WHERE notification_id = 3")

    assert check(path)[1:4] == (3, "", "its link of the chain is missing")


def test_a_removed_tail_is_missing_against_a_head_seen_elsewhere(path):
    head = opened(path).journal.head(STREAM)
    with Tampered(path) as store:
        store.remove(head.version)

    assert check(path).ok
    missing = f"it is missing: the head seen elsewhere is version {head.version}"
    assert check(path, head)[1:4] == (head.version, "", missing)


def test_a_tail_whose_links_stayed_leaves_a_hole(path):
    newest = opened(path).journal.head(STREAM).version
    with Tampered(path) as store:
        store.run("DELETE FROM stored_events WHERE originator_version = ?", newest)

    assert log(path) == f"the log has a hole: event or link number {newest} is missing"


def test_a_tail_that_cuts_a_decision_in_two_is_found_without_any_head(path):
    triggered = version_of(path, e.TrainingTriggered, -1)
    newest = opened(path).journal.head(STREAM).version
    with Tampered(path) as store:
        for version in range(triggered, newest + 1):
            store.remove(version)

    assert check(path)[1:4] == (triggered, "", "it is missing: TrainingTriggered follows")


def test_a_history_that_was_rewritten_as_a_whole_differs_from_a_head_seen_elsewhere(path):
    head = opened(path).journal.head(STREAM)
    with Tampered(path) as store:
        store.set_fields(1, id="m-other")
        store.link_again()

    assert check(path).ok
    other = opened(path).journal.head(STREAM).hash
    differs = f"its hash is {other}, but the head seen elsewhere says {head.hash}"
    assert check(path, head)[1:4] == (head.version, "", differs)


def test_a_head_of_an_older_version_is_compared_there(path):
    old = opened(path).rows(STREAM, first=6, last=6)[0]

    assert check(path, Head(6, old.hash)).ok
    assert check(path, Head(6, "0" * 64)).version == 6


def test_a_stream_that_only_a_head_knows_is_missing(path):
    archive = opened(path)
    rows, other = archive.journal.rows.scan(), "default/lifelonglearningjob/gone"
    heads = {other: [Head(4, "0" * 64)]}
    found = check_rows(rows, decode=archive.journal.decode, follow=CONTROLLER.follow, heads=heads)

    assert [(c.stream, c.ok) for c in found] == [(STREAM, True), (other, False)]
    assert found[1].fault == "the whole stream is missing: the head seen elsewhere is version 4"


@pytest.mark.parametrize(
    ("event_class", "changed", "fault"),
    [
        (e.TrainingTriggered, {"samples": 99}, "samples is 99, but its facts give 7"),
        (e.TrainingTriggered, {"round": 2}, "round is 2, but its facts give 1"),
        (e.TrainingTriggered, {"spooled": [[0, 2]]}, "spooled is [[0,2]], but its facts give"),
        (e.Ticked, {"reason": "window"}, 'reason is "window", but its facts give "no_samples"'),
        (e.Ticked, {"samples": 5}, "samples is 5, but its facts give null"),
        (e.SamplesArrived, {"train": 2, "eval": 2}, "train is 2, but its facts give 3"),
        (e.EvaluationTriggered, {"taken": []}, "taken is [], but its facts give"),
        (e.DeployTriggered, {"model": {"url": "/etc/shadow"}}, 'model is {"url":"/etc/shadow"}, but'),
        (e.TrainDataWritten, {"round": 7}, "no TrainDataWritten was possible"),
        (e.ModelDeployed, {"format": "onnx"}, 'format is "onnx", but its facts give "pkl"'),
        (e.GlobalManagerMessageReceived, {"generation": 2}, "generation is 2, but its facts give 1"),
        (e.GlobalManagerMessageReceived, {"conditions_count": 0}, "it does not fit|does not follow"),
        (e.SamplesArrived, {"rows": "x"}, "it does not fit the history before it"),
    ],
)
def test_a_decision_that_does_not_follow_is_found_although_the_chain_was_made_to_fit(path, event_class, changed, fault):
    version = version_of(path, event_class)
    with Tampered(path) as store:
        store.set_fields(version, **changed)
        store.link_again()
    checked = check(path)

    assert checked.version == version
    assert checked.fault is not None
    assert any(part in checked.fault for part in fault.split("|")), checked.fault


def test_a_decision_that_was_taken_out_is_found_although_the_chain_was_made_to_fit(path):
    version = version_of(path, e.TrainingTriggered)
    with Tampered(path) as store:
        store.remove(version)
        store.close_gap(version)
        store.link_again()

    assert check(path)[1:4] == (
        version,
        "",
        "the facts before it call for a TrainingTriggered, not a TrainDataWritten",
    )


def test_a_decision_that_was_put_in_is_found_although_the_chain_was_made_to_fit(path):
    with Tampered(path) as store:
        store.run("UPDATE stored_events SET topic = 'TrainingTriggered' WHERE originator_version = 2")
        trigger = store.state(version_of(path, e.TrainingTriggered))
        store.set_state(2, trigger)
        store.link_again()

    assert check(path)[1:4] == (2, "", "nothing before it calls for a TrainingTriggered")


def test_an_event_of_a_later_release_is_named(path):
    with Tampered(path) as store:
        store.run("UPDATE stored_events SET topic = 'CrystalBallAsked' WHERE originator_version = 4")
        store.link_again()
    checked = check(path)

    assert checked.version == 4
    assert "CrystalBallAsked" in str(checked.fault)


def test_decisions_under_other_rules_are_a_note_and_no_fault(path):
    version = version_of(path, e.TrainingTriggered)
    with Tampered(path) as store:
        store.set_fields(version, rules=99, samples=1)
        store.link_again()
    checked = check(path)

    assert checked.ok
    assert checked.notes == (f"version {version}: decided under rules 99, which this program does not have",)
    assert checked.to_json()["notes"] == list(checked.notes)


@pytest.fixture
def climbed():
    """A model that rules 1 let count at Eval."""
    rounds = Rounds(rules=1).arrive(9)
    rounds.wait().then(written(rounds.time))
    return rounds.told("Train/Completed", "Eval/Waiting", urls=("/output/job1/%2e%2e/m.pkl",)).history()


def test_a_decision_is_taken_again_by_the_rules_that_it_followed(climbed, tmp_path):
    assert len(climbed.of(e.EvaluationTriggered)) == 1
    checked = check(stored(tmp_path / "events.db", climbed.events))

    assert (checked.ok, checked.notes) == (True, ())


def test_one_that_claims_to_have_followed_newer_rules_has_to_follow_from_them(climbed, tmp_path):
    events = [replace(event, rules=2) if event.originator_version > 4 else event for event in climbed.events]
    checked = check(stored(tmp_path / "events.db", events))

    assert checked.version == 5
    assert 'reason is "fired", but its facts give "no_model"' in checked.fault


@pytest.mark.parametrize("rules", [1, e.RULES])
def test_an_adopted_job_that_stands_at_eval_follows_by_either_rules(tmp_path, rules):
    ready = {"input": {"dataURL": "/output/job1/data/train/4/data.txt", "outputDir": "/output/job1/train/4"}}
    models = output("/output/job1/%2e%2e/m.pkl", "/output/job1/m.pkl")
    stand = condition("Train", "Ready", "t1", ready), condition("Train", "Completed", "t2", models)
    history = given(gm(*stand, condition("Eval", "Waiting", "t3"), at=facts(rules=rules)))
    (triggered,) = history.of(e.EvaluationTriggered)
    assert len(triggered.input["models"]) == (2 if rules == 1 else 1)

    checked = check(stored(tmp_path / "events.db", history.events))

    assert (checked.ok, checked.notes) == (True, ())


def test_lives_of_a_name_follow_one_another(tmp_path):
    waiting = condition("Train", "Waiting", "t1")
    lives = given(gm(waiting, uid="a"), gm(waiting, uid="b"), deleted(), deleted(), gm(waiting, uid="b"))
    path = stored(tmp_path / "events.db", lives.events)

    assert check(path).ok


def test_a_list_of_conditions_that_gm_trimmed_can_be_decided_again(tmp_path):
    rounds = Rounds().arrive(9).trained()
    del rounds.conditions[:-3]
    path = stored(tmp_path / "events.db", rounds.arrive(9).trained().history().events)

    assert check(path).ok


def test_models_in_places_that_were_opened_and_closed_follow_without_any_setting(tmp_path):
    """Nothing but the history says which places counted."""
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Completed", "Eval/Waiting", urls=("/models/m.pkl",)).ticked()
    rounds.open_places("/models").ticked().wait().then(written(rounds.time))
    rounds.told("Eval/Completed", "Deploy/Waiting", urls=("/models/m.pkl",)).wait().then(copied(rounds.time))
    rounds.open_places().told("Train/Waiting").arrive(9).wait().then(written(rounds.time))
    history = rounds.told("Train/Completed", "Eval/Waiting", urls=("/models/m.pkl",)).history()
    assert history.state.verdict.reason == "no_model"
    assert [event.input["models"][0]["url"] for event in history.of(e.EvaluationTriggered)] == ["/models/m.pkl"]

    path = stored(tmp_path / "events.db", history.events)

    assert check(path).ok


def test_an_evaluated_model_in_a_place_that_was_not_open_does_not_follow(tmp_path):
    rounds = Rounds().open_places("/models").arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Completed", "Eval/Waiting", urls=("/models/m.pkl",))
    events = [
        replace(event, model_places=None) if isinstance(event, e.GlobalManagerMessageReceived) else event
        for event in rounds.history().events
    ]

    checked = check(stored(tmp_path / "events.db", events))

    assert 'reason is "fired", but its facts give "no_model"' in checked.fault
