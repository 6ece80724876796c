from __future__ import annotations

from typing import Any

import orjson
import pytest
from support.given import NOW, STREAM, arrive, copied, deleted, facts, given, gm, repeated, reported, ticked, written
from support.sedna import condition, output

from lc_events.domain.job import JobState, Verdict
from lc_events.domain.trigger import Trigger
from lc_events.domain.views import job_view, verdict_detail

LATER = "2024-01-02T00:00:00.000000Z"


def test_the_job_state_has_the_keys_of_the_contract_in_its_order():
    t1, t2 = condition("Train", "Waiting", "t1"), condition("Train", "Completed", "t2")
    e1 = condition("Eval", "Waiting", "t3")
    trained = condition("Train", "Completed", "t4", output("/output/job1/train/1/m.pkl"))
    history = given(gm(t1, message_id="m-11"), arrive(10), written(), gm(t1, trained, e1), written())
    history = history.when(gm(t1, trained, e1, t1), arrive(10), written())
    without_model = [condition("Train", "Completed", "t0"), t2, condition("Eval", "Waiting", "t9")]
    history = history.when(gm(*without_model, message_id="m-12"), reported(), repeated("m-12"), ticked())
    assert job_view(history.state, "edge1") == {
        "namespace": "default",
        "name": "job1",
        "node": "edge1",
        "version": len(history.events),
        "generation": 1,
        "deleted": False,
        "stage": "Eval",
        "type": "Waiting",
        "round": 2,
        "gm_message": "m-12",
        "samples": {
            "seen": 20,
            "train_pending": 0,
            "eval_pending": 4,
            "eval_versions": 2,
            "train_total": 16,
            "eval_total": 4,
        },
        "triggers": {"train": "completed", "eval": "ready", "deploy": "ready"},
        "verdict": {
            "time": NOW,
            "stage": "Eval",
            "fired": False,
            "reason": "no_model",
            "detail": "no Train/Completed condition names a model",
        },
        "train_data_url": "/output/job1/data/train/2/data.txt",
        "eval_data_url": "/output/job1/data/eval/1/data.txt",
        "model": None,
        "counts": {"ticks": 1, "gm_messages": 4, "worker_results": 1, "duplicates": 1},
        "updated": NOW,
    }
    assert list(job_view(history.state, "edge1"))[:4] == ["namespace", "name", "node", "version"]


def test_a_job_without_conditions_has_neither_stage_nor_verdict():
    view = job_view(given(gm()).state, "edge1")
    assert (view["stage"], view["type"], view["verdict"]) == (None, None, None)


def test_a_job_that_never_was_can_be_shown():
    view: dict[str, Any] = dict(job_view(JobState(STREAM), "edge1"))
    assert (view["version"], view["generation"], view["deleted"]) == (0, 0, False)
    assert orjson.dumps(view)


def test_a_deleted_job_is_shown_as_it_was_last():
    view = job_view(given(gm(condition("Train", "Waiting")), arrive(5), deleted()).state, "edge1")
    assert (view["deleted"], view["stage"], view["generation"]) == (True, "Train", 1)


def test_the_deployed_model_is_shown():
    deploying = (
        condition("Eval", "Completed", "t1", output("/output/job1/m.pkl")),
        condition("Deploy", "Waiting", "t2"),
    )
    view = job_view(given(gm(*deploying), copied()).state, "edge1")
    assert view["model"] == {
        "round": 0,
        "url": "/output/job1/deploy/index.pkl",
        "format": "pkl",
        "sha256": "0" * 64,
        "size": 100,
        "time": NOW,
    }


def test_a_verdict_carries_the_moment_that_it_judged():
    history = given(gm(condition("Train", "Waiting"))).when(ticked("external", as_of=LATER))
    view: Any = job_view(history.state, "edge1")
    assert (view["verdict"]["time"], view["updated"]) == (LATER, NOW)


def test_a_tick_is_judged_by_the_clock_of_its_zone():
    night = {"timer": {"start": "02:00", "end": "03:00"}}
    history = given(gm(condition("Train", "Waiting"), trigger=night), arrive(10))
    in_tokyo = facts("2024-01-01T17:30:00.000000Z", zone="Asia/Tokyo")
    view: Any = job_view(history.when(ticked(at=in_tokyo)).state, "edge1")
    assert view["verdict"]["fired"]


@pytest.mark.parametrize(
    ("stage", "reason", "samples", "trigger", "detail"),
    [
        ("Train", "samples", 2, Trigger(">", 3.0), "num_of_samples 2 is not > 3"),
        ("Train", "samples", 2, Trigger("ge", 2.5), "num_of_samples 2 is not ge 2.5"),
        ("Train", "samples", 2, Trigger(">", 12345678.0), "num_of_samples 2 is not > 12345678"),
        ("Train", "fired", 4, Trigger(">", 3.0), "num_of_samples 4 is > 3"),
        ("Train", "fired", 4, Trigger(), "num_of_samples 4, without a condition"),
        ("Train", "no_samples", 0, Trigger(), "no train sample is pending"),
        ("Train", "metric", 4, Trigger(">", 1.0, "acc"), "the metric 'acc' is not known here: it never fires"),
        ("Train", "window", 4, Trigger(window=(120, 1440)), "outside the window 02:00-24:00 (UTC), num_of_samples 4"),
        ("Train", "in_progress", 0, Trigger(), "the decision was made, and is not carried out yet"),
        ("Eval", "fired", 4, Trigger(), "4 samples are to be evaluated"),
        ("Eval", "no_model", 4, Trigger(), "no Train/Completed condition names a model"),
        ("Deploy", "fired", 0, Trigger(), "the evaluated model is to be deployed"),
    ],
)
def test_a_verdict_says_why(stage: str, reason: str, samples: int, trigger: Trigger, detail: str):
    assert verdict_detail(Verdict(NOW, stage, reason, samples, trigger, "UTC", None)) == detail


def test_a_note_takes_the_place_of_the_general_words():
    assert verdict_detail(Verdict(NOW, "Train", "dataset", 0, Trigger(), "UTC", "/data is gone")) == "/data is gone"


def test_a_model_that_does_not_count_is_told_with_the_setting_that_would_let_it():
    detail = verdict_detail(Verdict(NOW, "Eval", "no_model", 0, Trigger(), "UTC", "its URL is not below its outputDir"))
    assert detail == "its URL is not below its outputDir, nor in a place that LC_MODEL_PLACES names"
