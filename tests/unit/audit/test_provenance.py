from __future__ import annotations

import pytest
from support.given import deleted
from support.rounds import Rounds, two_rounds

from lc_events.application.audit.provenance import provenance
from lc_events.errors import NotFoundError


def looked_up(rounds, round_, generation=None):
    return provenance(rounds.history().events, round_, generation)


def ranges(file):
    return [(r.epoch, *r.rows) for r in file.records]


def test_train_records_are_those_that_arrived_as_train_samples():
    found = looked_up(two_rounds(), 1)

    assert ranges(found.train) == [(1, 0, 3), (1, 4, 8)]
    assert {(r.dataset, r.url) for r in found.train.records} == {("ds", "/data/ds.txt")}
    assert [r.version for r in found.train.records] == [3, 5]
    assert found.train.samples == 7
    assert found.train.files[0]["url"] == "/output/job1/data/train/1/data.txt"


def test_an_eval_file_repeats_the_rounds_before():
    first, second = looked_up(two_rounds(), 1), looked_up(two_rounds(), 2)

    assert ranges(first.eval) == [(1, 3, 4), (1, 8, 9)]
    assert ranges(second.eval)[:2] == ranges(first.eval)
    assert sum(last - begin for _, begin, last in ranges(second.eval)) == second.eval.samples


def test_no_record_trains_in_two_rounds():
    records = [ranges(looked_up(two_rounds(), number).train) for number in (1, 2)]
    rows = [set(range(begin, end)) for part in records for _, begin, end in part]

    assert sum(map(len, rows)) == len(set().union(*rows))


def test_the_model_is_that_of_the_round_with_its_source_and_what_workers_said():
    found = looked_up(two_rounds(), 2)

    assert found.model["round"] == 2
    assert found.model["source"] == "/output/job1/train/2/model.pkl"
    assert [(r["kind"], r["status"]) for r in found.results] == [
        ("train", "running"),
        ("train", "completed"),
        ("eval", "completed"),
    ]


def test_a_later_round_replaces_the_deployed_model():
    found = looked_up(two_rounds(), 1)

    assert found.replaced == {"/output/job1/deploy/index.pkl": looked_up(two_rounds(), 2).model["version"]}
    assert looked_up(two_rounds(), 2).replaced == {}


def test_a_round_that_goes_on_has_no_model_yet():
    found = looked_up(Rounds().arrive(9), 1)

    assert (found.eval, found.model, found.train.written) == (None, None, None)


def lives():
    rounds = Rounds().arrive(9).trained().then(deleted())
    rounds.conditions.clear()
    return rounds.told("Train/Waiting", operation="insert").arrive(6).trained()


def test_the_newest_life_with_the_round_is_meant_unless_one_is_named():
    assert looked_up(lives(), 1).generation == 2
    assert looked_up(lives(), 1, 1).generation == 1
    assert "/output/job1/data/train/1/data.txt" in looked_up(lives(), 1, 1).replaced


@pytest.mark.parametrize(("round_", "generation"), [(3, None), (1, 7)])
def test_a_round_that_was_not_decided_is_not_found(round_, generation):
    with pytest.raises(NotFoundError, match="was not decided here; rounds are 1, 2"):
        looked_up(two_rounds(), round_, generation)


def test_all_of_it_is_json():
    found = looked_up(two_rounds(), 1).to_json()

    assert found["train"]["records"][0] == {
        "dataset": "ds",
        "url": "/data/ds.txt",
        "epoch": 1,
        "rows": [0, 3],
        "bytes": [0, 40],
        "version": 3,
    }
