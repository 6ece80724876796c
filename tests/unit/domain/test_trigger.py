from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sedna import MORE_THAN_3

from lc_events.domain.trigger import Trigger, compare
from lc_events.messages.json import JsonObject

NOON = datetime(2024, 1, 10, 12, 0, tzinfo=UTC)


def trigger(condition: JsonObject | None = None, timer: JsonObject | None = None, **more: object) -> Trigger:
    raw = {"condition": condition, "timer": timer, **more}
    return Trigger.read({"trainSpec": {"trigger": {n: v for n, v in raw.items() if v is not None}}})


@pytest.mark.parametrize(
    ("operator", "below", "at", "above"),
    [
        (("gt", ">"), False, False, True),
        (("ge", ">="), False, True, True),
        (("eq", "=", "=="), False, True, False),
        (("ne", "!="), True, False, True),
        (("le", "<="), True, True, False),
        (("lt", "<"), True, False, False),
    ],
)
def test_operators_compare_as_sednas(operator: tuple[str, ...], below: bool, at: bool, above: bool):
    for name in operator:
        assert [compare(value, name, 3) for value in (2, 3, 4)] == [below, at, above]


@pytest.mark.parametrize("operator", [">=", "==", "<="])
def test_numbers_closer_than_a_millionth_are_equal(operator: str):
    assert compare(3, operator, 3.0000009)
    assert compare(3, operator, 2.9999991)
    assert not compare(3, ">", 2.9999991)
    assert not compare(3, "<", 3.0000009)
    assert compare(3, ">", 2.999998)


@given(st.integers(0, 10**6), st.floats(-1e6, 1e6))
def test_every_value_is_below_at_or_above(value: int, threshold: float):
    assert [compare(value, op, threshold) for op in ("<", "==", ">")].count(True) == 1
    assert compare(value, ">=", threshold) is not compare(value, "<", threshold)
    assert compare(value, "<=", threshold) is not compare(value, ">", threshold)
    assert compare(value, "!=", threshold) is not compare(value, "==", threshold)


def test_an_unknown_operator_never_fires():
    assert not compare(3, "=>", 3)


def test_a_condition_fires_by_its_metric():
    more_than_3 = trigger(MORE_THAN_3["condition"])  # type: ignore[arg-type]
    assert more_than_3.judge(3, NOON, "UTC") == "samples"
    assert more_than_3.judge(4, NOON, "UTC") == "fired"


def test_no_sample_means_no_training_ever():
    assert trigger({"operator": ">=", "threshold": 0, "metric": "num_of_samples"}).judge(0, NOON, "UTC") == "no_samples"
    assert (
        trigger({"operator": "<", "threshold": 100, "metric": "num_of_samples"}).judge(0, NOON, "UTC") == "no_samples"
    )
    assert Trigger().judge(0, NOON, "UTC") == "no_samples"


@pytest.mark.parametrize("struct", [None, {}, {"operator": "", "threshold": 0, "metric": ""}])
def test_an_absent_condition_is_true(struct: JsonObject | None):
    assert trigger(struct).judge(1, NOON, "UTC") == "fired"
    assert trigger(struct).operator is None


@pytest.mark.parametrize("struct", [None, {}, {"start": "", "end": ""}])
def test_an_absent_window_is_true(struct: JsonObject | None):
    assert trigger(None, struct).judge(1, NOON, "UTC") == "fired"


def test_another_metric_never_fires_and_says_so():
    assert trigger({"operator": ">", "threshold": 0, "metric": "accuracy"}).judge(100, NOON, "UTC") == "metric"
    assert trigger({"operator": ">", "threshold": 0}).judge(100, NOON, "UTC") == "metric"


def test_window_and_condition_must_both_be_true():
    both = trigger(MORE_THAN_3["condition"], {"start": "02:00", "end": "04:00"})  # type: ignore[arg-type]
    night = NOON.replace(hour=3)
    assert both.judge(4, NOON, "UTC") == "window"
    assert both.judge(3, NOON, "UTC") == "samples"
    assert both.judge(4, night, "UTC") == "fired"
    assert both.judge(4, night, "Asia/Tokyo") == "window"


def test_a_timer_alone_fires():
    assert trigger(None, {"start": "12:00", "end": "24:00"}).judge(1, NOON, "UTC") == "fired"


@pytest.mark.parametrize(
    "spec", [{}, {"trainSpec": {}}, {"trainSpec": {"trigger": None}}, {"trainSpec": {"trigger": {}}}]
)
def test_a_job_without_a_trigger_trains_on_any_sample(spec: JsonObject):
    assert Trigger.read(spec) == Trigger()


@pytest.mark.parametrize("threshold", [3, 3.0, "3", "3.0"])
def test_a_threshold_is_a_number_or_a_numeric_string(threshold: object):
    assert trigger({"operator": ">", "threshold": threshold, "metric": "num_of_samples"}).threshold == 3.0


@pytest.mark.parametrize(("seconds", "period"), [(5, 5), (0, None), (None, None)])
def test_the_period_of_ticks_is_the_triggers(seconds: int | None, period: int | None):
    assert trigger(checkPeriodSeconds=seconds).period == period


def test_the_facts_name_metric_value_operator_threshold_and_window():
    assert trigger().facts(5, "UTC") == {
        "metric": "num_of_samples",
        "value": 5,
        "operator": None,
        "threshold": None,
        "window": None,
        "zone": "UTC",
    }
