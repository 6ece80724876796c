"""What the tables of `jobs`, `show` and `at` say beside the state: what keeps a job from going on."""

from __future__ import annotations

import json

import pytest
from support.given import facts, failed, ticked, written
from support.rounds import Rounds
from support.sedna import DATASET, dataset_resource, down
from support.stores import stored

from lc_events.domain.dataset import DatasetState, receive_dataset_message, unreadable_dataset


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """Times are shown in UTC."""
    monkeypatch.setenv("LC_TIMEZONE", "UTC")


def gone():
    """The history of the dataset, whose file is gone at 00:05."""
    message = down(dataset_resource(), kind=DATASET, name="ds")
    inserted, state = receive_dataset_message(
        DatasetState("default/dataset/ds"), message, "2024-01-01T00:00:30.000000Z"
    )
    unreadable, _ = unreadable_dataset(state, code="missing", error="no file", now="2024-01-01T00:05:00.000000Z")
    return inserted, unreadable


def test_jobs_and_show_name_an_effect_that_fails_until_it_is_done(tmp_path, lc_events):
    rounds = Rounds().arrive(9)
    rounds.wait().then(failed("denied", "no right to write", now=rounds.time))
    rounds.wait(70).then(failed("denied", "no right to write", attempt=90, now=rounds.time))
    stored(tmp_path / "events.db", rounds.history().events)
    before = len(rounds.history().events)
    rounds.wait().then(written(rounds.time))
    stored(tmp_path / "done" / "events.db", rounds.history().events)
    fails = "Train of round 1 fails since 2024-01-01 00:03:00, and is tried again: no right to write"

    line = lc_events("jobs", "--store", tmp_path).out.splitlines()[1]
    assert line.endswith(f"num_of_samples 7 is > 3; {fails}")
    assert lc_events("show", "job1", "--store", tmp_path).out.endswith(f"troubles\n  1.  {fails}\n")
    assert "troubles" not in json.loads(lc_events("show", "job1", "--store", tmp_path, "-o", "json").out)
    for command in (("jobs",), ("show", "job1"), ("at", "job1", "--version", 3)):
        assert "fails" not in lc_events(*command, "--store", tmp_path / "done").out
    assert fails in lc_events("at", "job1", "--version", before, "--store", tmp_path / "done").out


def test_jobs_and_show_name_a_dataset_that_gives_no_samples(tmp_path, lc_events):
    rounds = Rounds().arrive(2)
    silent = "dataset default/ds cannot be read since 2024-01-01 00:05:00: no file"
    stored(tmp_path / "events.db", rounds.history().events, *gone())

    assert lc_events("jobs", "--store", tmp_path).out.splitlines()[1].endswith(f"num_of_samples 1 is not > 3; {silent}")
    assert lc_events("show", "job1", "--store", tmp_path).out.endswith(f"troubles\n  1.  {silent}\n")
    assert "troubles" not in lc_events("at", "job1", "--time", "2024-01-01T00:04:00Z", "--store", tmp_path).out
    assert silent in lc_events("at", "job1", "--time", "2024-01-01T00:06:00Z", "--store", tmp_path).out


def test_jobs_says_once_that_a_dataset_is_gone(tmp_path, lc_events):
    rounds = Rounds()
    rounds.then(ticked(at=facts(rounds.wait().time, note="no file")))
    stored(tmp_path / "events.db", rounds.history().events, *gone())

    line = lc_events("jobs", "--store", tmp_path).out.splitlines()[1]
    assert line.endswith("  no file")
