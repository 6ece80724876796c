from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.sedna import condition, dataset_resource, job_resource

from lc_events.messages.resources import Dataset, LifelongLearningJob, Trigger, TriggerCondition, Window, below


def with_trigger(**trigger: object) -> dict[str, Any]:
    return job_resource(trigger=trigger)


def test_fields_that_we_do_not_know_are_kept():
    content = job_resource(condition("Train", "Waiting"), labels={"a": "b"})
    content["spec"]["credentialName"] = "secret"
    assert LifelongLearningJob.model_validate(content).model_dump(by_alias=True, exclude_unset=True) == content


@pytest.mark.parametrize("prob", [0, 1, 0.0, 1.0, 0.29, 1e-9])
def test_the_share_that_trains_lies_in_0_to_1(prob: float):
    assert LifelongLearningJob.model_validate(job_resource(train_prob=prob)).spec.dataset.train_prob == prob


@pytest.mark.parametrize("prob", [2.0, -0.1, 1.0000001, "0.8", True, None])
def test_another_share_is_invalid(prob: Any):
    with pytest.raises(ValidationError):
        LifelongLearningJob.model_validate(job_resource(train_prob=prob))


@pytest.mark.parametrize(
    "url",
    ["/../..", "/out/../..", "s3://bucket/../x", "relative", "", "ftp://x/y", "s3://", "s3:///key", "/a\nb", "/a\0"],
)
def test_an_output_url_is_an_absolute_path_or_an_object_and_never_leads_upwards(url: str):
    with pytest.raises(ValidationError):
        LifelongLearningJob.model_validate(job_resource(output_dir=url))


@pytest.mark.parametrize("url", ["/output", "/", "/a..b/c", "s3://bucket", "s3://bucket/a/b"])
def test_local_and_s3_urls_are_output_urls(url: str):
    assert LifelongLearningJob.model_validate(job_resource(output_dir=url)).spec.output_dir == url


def test_an_empty_namespace_is_the_default_one():
    content = job_resource()
    content["metadata"]["namespace"] = ""
    assert LifelongLearningJob.model_validate(content).metadata.namespace == "default"


@pytest.mark.parametrize("operator", ["gt", ">", "ge", ">=", "eq", "=", "==", "ne", "!=", "le", "<=", "lt", "<"])
def test_each_operator_of_sedna_is_known(operator: str):
    trigger = {"condition": {"operator": operator, "threshold": "3.5", "metric": "num_of_samples"}}
    found = LifelongLearningJob.model_validate(job_resource(trigger=trigger)).spec.train_spec.trigger
    assert found is not None
    assert found.condition is not None
    assert (found.condition.operator, found.condition.threshold) == (operator, 3.5)


@pytest.mark.parametrize(
    "broken",
    [
        {"operator": "=>", "threshold": 3, "metric": "num_of_samples"},
        {"operator": ">", "threshold": "many", "metric": "num_of_samples"},
        {"operator": ">", "threshold": True, "metric": "num_of_samples"},
        {"operator": ">", "threshold": "1e999", "metric": "num_of_samples"},
        {"operator": ">", "threshold": "nan", "metric": "num_of_samples"},
        {"operator": ">", "threshold": 3, "metric": "num_of_samples["},
        {"operator": "", "threshold": 3, "metric": "num_of_samples"},
        {"operator": ">", "threshold": [3], "metric": "num_of_samples"},
    ],
)
def test_a_condition_that_could_not_be_judged_is_invalid(broken: dict[str, object]):
    with pytest.raises(ValidationError):
        LifelongLearningJob.model_validate(with_trigger(condition=broken))


@pytest.mark.parametrize("struct", [{}, {"operator": "", "metric": ""}, {"operator": "", "threshold": 5, "metric": ""}])
def test_gos_empty_struct_is_no_condition(struct: dict[str, object]):
    assert TriggerCondition.model_validate(struct).is_absent


def test_a_metric_of_another_name_is_let_in_and_will_never_fire():
    assert not TriggerCondition.model_validate({"operator": ">", "threshold": 1, "metric": "accuracy"}).is_absent


@pytest.mark.parametrize(
    ("start", "end", "minutes"),
    [
        ("02:00", "04:30", (120, 270)),
        ("9:00", "10:00", (540, 600)),
        ("00:00", "24:00", (0, 1440)),
        ("22:00", "05:00", (1320, 300)),
    ],
)
def test_a_window_is_read_in_minutes(start: str, end: str, minutes: tuple[int, int]):
    assert Window(start=start, end=end).minutes == minutes


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("24:00", "03:00"),
        ("02:00", "24:01"),
        ("02:60", "03:00"),
        ("2", "3"),
        ("02:00", ""),
        ("", "03:00"),
        ("-1:00", "2:00"),
        ("02:00\n", "03:00"),
        ("\u0660\u0662:\u0660\u0660", "03:00"),
    ],
)
def test_what_is_no_time_of_day_is_invalid(start: str, end: str):
    with pytest.raises(ValidationError):
        Window(start=start, end=end)


def test_a_window_without_start_and_end_is_absent():
    assert Window().is_absent


@pytest.mark.parametrize("period", [-1, 1.5, "soon", 31_536_001])
def test_a_period_that_is_no_number_of_seconds_is_invalid(period: object):
    with pytest.raises(ValidationError):
        Trigger.model_validate({"checkPeriodSeconds": period})


@pytest.mark.parametrize("format_", ["txt", "csv", "CSV", "Txt"])
def test_a_dataset_is_txt_or_csv(format_: str):
    assert Dataset.model_validate(dataset_resource(format_=format_)).spec.format == format_


@pytest.mark.parametrize("format_", ["json", "", "csv\n", "xcsv"])
def test_another_format_is_invalid(format_: str):
    with pytest.raises(ValidationError):
        Dataset.model_validate(dataset_resource(format_=format_))


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/output/job1/train/1/m.pkl", "/output/job1"),
        ("/output/job1/x/../m.pkl", "/output/job1/"),
        ("//output/job1/m.pkl", "/output/job1"),
        ("/output/job1/m.pkl", "//output//job1"),
        ("/m.pkl", "/"),
        ("/m.pkl", ""),
        ("s3://bucket/out/m.pkl", "s3://bucket/out"),
        ("s3://bucket/m.pkl", "s3://bucket"),
    ],
)
def test_a_url_lies_below_its_folder(url: str, folder: str):
    assert below(url, folder)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/etc/shadow", "/output/job1"),
        ("/output/job1/../job2/m.pkl", "/output/job1"),
        ("/output/job10/m.pkl", "/output/job1"),
        ("/output/job1", "/output/job1"),
        ("/output/job1/.", "/output/job1"),
        ("output/job1/m.pkl", "/output/job1"),
        ("", "/output/job1"),
        ("s3://bucket/other/m.pkl", "s3://bucket/out"),
        ("s3://bucket/out/../m.pkl", "s3://bucket/out"),
        ("s3://bucket/out/", "s3://bucket/out"),
        ("s3://bucket2/out/m.pkl", "s3://bucket/out"),
        ("/bucket/out/m.pkl", "s3://bucket/out"),
        ("s3://bucket/out/m.pkl", "/bucket/out"),
    ],
)
def test_a_url_elsewhere_does_not(url: str, folder: str):
    assert not below(url, folder)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda i: (
            st.lists(i, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["timer", "condition", "operator", "metric", "threshold", "start", "end", "checkPeriodSeconds"]
                ),
                i,
            )
        ),
        max_leaves=12,
    )
)
def test_any_trigger_is_either_read_or_invalid(raw: object):
    try:
        trigger = Trigger.model_validate(raw)
    except ValidationError:
        return
    if trigger.timer is not None and not trigger.timer.is_absent:
        assert 0 <= trigger.timer.minutes[0] < 1440
