from __future__ import annotations

from datetime import timedelta

import pytest
from support.given import deleted, failed
from support.rounds import Rounds
from support.stores import stored

from lc_events.application.journal import open_journal
from lc_events.controller.lost_samples import WHAT_TO_DO
from lc_events.controller.world import World
from lc_events.doctor.finding import Level
from lc_events.doctor.jobs import check_effects
from lc_events.domain.events import LC_EVENTS, Registry


@pytest.fixture
def effects(tmp_path):
    """What is found of the effects of a history, two hours after its end."""

    def find(rounds):
        path = tmp_path / f"{len(rounds.commands)}.db"
        journal = open_journal(stored(path, rounds.history().events), Registry(LC_EVENTS))
        try:
            return list(check_effects(World.load(journal), journal, rounds.now + timedelta(hours=2)))
        finally:
            journal.close()

    return find


def given_up(code, words):
    rounds = Rounds().arrive(9).evaluated()
    rounds.wait().then(failed(code, words, final=True, now=rounds.time))
    return rounds.told("Deploy/Failed", "Train/Waiting").arrive(9)


@pytest.mark.parametrize(
    ("code", "advice"),
    [("outside", "LC_MODEL_PLACES"), ("missing", "where it reports"), ("not_a_file", "where it reports")],
)
def test_a_model_that_was_given_up_is_wrong_until_another_one_is_deployed(effects, code, advice):
    rounds = given_up(code, "the reason")
    [finding] = effects(rounds)
    assert (finding.check, finding.level) == ("effects", Level.WRONG)
    assert finding.says == "default/job1: Deploy of round 1 was given up 2 h ago: the reason"
    assert advice in (finding.advice or "")
    [finding] = effects(rounds.trained())
    assert finding.level is Level.OK


def test_what_fails_now_and_what_was_given_up_each_have_a_line(effects):
    rounds = given_up("outside", "the reason")
    rounds.wait().then(failed("no_space", "no room", now=rounds.time))
    assert [finding.says.split(":")[1].strip() for finding in effects(rounds)] == [
        "Train of round 2",
        "Deploy of round 1 was given up 2 h ago",
    ]


def test_a_deleted_job_has_given_up_nothing(effects):
    [finding] = effects(given_up("outside", "the reason").then(deleted()))
    assert finding.level is Level.OK


def test_the_advice_for_what_is_denied_fits_reading_and_writing(effects):
    rounds = Rounds().arrive(9).evaluated()
    rounds.wait().then(failed("denied", "cannot read s3://models/m.pkl: access is denied", now=rounds.time))
    [finding] = effects(rounds)
    assert "Deploy of round 1: cannot read s3://models/m.pkl: access is denied (for 2 h" in finding.says
    assert finding.advice == (
        "give the controller's user, or the job's credential, the right to what the message names: to read it, or to "
        "write there"
    )


@pytest.mark.parametrize(
    ("known", "advice"),
    [
        ("they are looked for in the dataset's file", "nothing to do; it is repaired by itself"),
        (f"the dataset's file no longer holds them: {WHAT_TO_DO}", "correct what the message names"),
    ],
)
def test_samples_that_the_controller_looks_for_need_nobody_until_it_found_none(effects, known, advice):
    rounds = Rounds().arrive(9)
    rounds.wait().then(failed("lost", f"samples 0 to 9 are not in the spool; {known}", now=rounds.time))
    [finding] = effects(rounds)
    assert finding.advice == advice
