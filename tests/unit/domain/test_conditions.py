from __future__ import annotations

import pytest
from support.sedna import condition, model, output

from lc_events.domain.conditions import (
    digest,
    is_proven,
    models_of,
    new_conditions,
    rank_of_result,
    round_of,
    waiting_key,
)
from lc_events.messages.json import UINT64_MAX, JsonObject

LIST = [condition("Train", "Waiting", "t1"), condition("Train", "Ready", "t2"), condition("Train", "Running", "t3")]


def news(conditions: list[JsonObject], known: list[JsonObject]):
    return new_conditions(conditions, count=len(known), known=digest(known), last=known[-1] if known else None)


def test_what_follows_the_known_list_is_new():
    assert news(LIST, LIST[:1]) == LIST[1:]
    assert news(LIST, LIST) == []
    assert news(LIST, []) == LIST


def test_of_a_trimmed_list_what_follows_the_last_known_entry_is_new():
    assert news(LIST[1:], LIST[:2]) == LIST[2:]


def test_a_list_written_anew_is_all_new():
    assert news(LIST, [condition("Eval", "Waiting", "t0")]) == LIST


def test_a_list_of_which_an_older_entry_changed_is_all_new():
    changed = [condition("Train", "Waiting", "t0"), *LIST[1:]]
    assert news(changed, LIST) == changed


def test_a_shorter_list_is_all_new():
    assert news(LIST[:1], LIST) == LIST[:1]


def test_a_waiting_condition_is_known_by_uid_count_stage_type_and_time():
    waiting = condition("Train", "Waiting", "t1")
    assert waiting_key("u", 4, waiting) == ("u", 4, "Train", "Waiting", "t1")
    assert waiting_key("u", 4, waiting) != waiting_key("v", 4, waiting)
    assert waiting_key("u", 4, waiting) != waiting_key("u", 5, waiting)
    assert waiting_key("u", 4, waiting) != waiting_key("u", 4, condition("Train", "Waiting", "t2"))
    assert waiting_key("u", 4, waiting) != waiting_key("u", 4, condition("Eval", "Waiting", "t1"))


def test_the_time_may_be_absent():
    assert waiting_key(None, 1, {"stage": "Train", "type": "Waiting"}) == (None, 1, "Train", "Waiting", None)


@pytest.mark.parametrize(
    "last",
    [None, condition("Banana", "Waiting"), *(condition("Train", type_) for type_ in ("Ready", "Running", "Completed"))],
)
def test_another_condition_waits_for_nothing(last: JsonObject | None):
    assert waiting_key(None, 1, last) is None


def test_models_come_from_the_data_of_a_completed_condition_classes_written_even_when_null():
    found = models_of(condition("Train", "Completed", data={"output": {"models": [{"format": "pkl", "url": "/m"}]}}))
    assert found == [{"format": "pkl", "url": "/m", "classes": None}]


@pytest.mark.parametrize(
    "data",
    [
        None,
        "",
        "no json",
        "[]",
        "{}",
        '{"output":null}',
        '{"output":{"models":null}}',
        '{"output":{"models":[]}}',
        '{"output":{"models":[null]}}',
        '{"output":{"models":[{"format":"pkl"}]}}',
        '{"output":{"models":[{"url":""}]}}',
        '{"output":{"models":{"url":"/m"}}}',
        '{"input":{"models":[{"url":"/m"}]}}',
    ],
)
def test_data_without_an_output_names_no_model(data: str | None):
    assert models_of(condition("Train", "Completed", data=data)) is None


def test_a_model_with_an_unsigned_integer_in_it_counts():
    named = models_of(condition("Train", "Completed", data={"output": {"models": [model("/m", size=UINT64_MAX)]}}))
    assert named is not None
    assert named[0]["size"] == UINT64_MAX


@pytest.mark.parametrize("type_", ["Waiting", "Ready", "Running", "Failed"])
def test_only_completed_puts_out_models(type_: str):
    assert models_of(condition("Train", type_, data=output("/m"))) is None


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("/output/job1/data/train/7/data.txt", 7),
        ("s3://bucket/job1/data/train/12/data.csv", 12),
        ("/output/job1/data/train/0/data.txt", None),
        ("/output/job1/data/train/x/data.txt", None),
        ("/output/job1/data/train/7", None),
        ("/output/job1/data/train/7/other", None),
        ("7/data.txt", None),
        ("", None),
    ],
)
def test_the_round_is_read_from_the_train_data_url(url: str, found: int | None):
    named = round_of(condition("Train", "Ready", data={"input": {"dataURL": url}}))
    assert named == (None if found is None else (found, url))


def test_only_train_ready_names_a_round():
    data = {"input": {"dataURL": "/output/job1/data/train/7/data.txt"}}
    assert round_of(condition("Eval", "Ready", data=data)) is None
    assert round_of(condition("Train", "Running", data=data)) is None
    assert round_of(condition("Train", "Ready")) is None


@pytest.mark.parametrize(
    ("kind", "status", "rank"),
    [
        ("train", "running", ("Train", 3)),
        ("TRAIN", "Completed", ("Train", 4)),
        ("eval", "failed", ("Eval", 4)),
        ("inference", "running", ("Deploy", 3)),
        ("banana", "sleeping", ("", 3)),
    ],
)
def test_a_result_belongs_to_a_stage_and_goes_so_far(kind: str, status: str, rank: tuple[str, int]):
    assert rank_of_result(kind, status) == rank


def test_a_condition_of_the_stage_that_went_as_far_proves_a_report():
    assert is_proven("Train", 1, [condition("Train", "Ready")])
    assert is_proven("Train", 4, [condition("Train", "Waiting")])
    assert not is_proven("Train", 3, [condition("Train", "Starting"), condition("Eval", "Completed")])
    assert not is_proven("", 3, [condition("Deploy", "Completed")])
