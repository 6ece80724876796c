"""When a round begins: triggers, trainProb and stages that need no samples, as a GM and a dataset see them."""

from __future__ import annotations

import pytest
from support.played_gm import at, train_ready, trained
from support.sedna import condition, output
from support.waiting import eventually

NUM = "num_of_samples"


def lines(first: int, last: int) -> str:
    return "".join(f"s{i}\n" for i in range(first, last))


def begin(lc, gm, count: int = 10, **job: object) -> None:
    lc.write("/data/ds.txt", lines(0, count))
    gm.dataset()
    gm.expect({"numberOfSamples": count})
    gm.job(**job)


@pytest.mark.parametrize(
    "trigger",
    [
        None,
        {},
        {"condition": {"operator": "", "threshold": 0, "metric": ""}},
        {"condition": {"operator": "ge", "threshold": "8", "metric": NUM}},
        {"condition": {"operator": "==", "threshold": 8.0000001, "metric": NUM}},
        {"condition": {"operator": "ne", "threshold": 7, "metric": NUM}},
        {"timer": {"start": "00:00", "end": "24:00"}},
        {"timer": {"start": "12:01", "end": "12:00"}},
        {"timer": {"start": "", "end": ""}, "condition": {"operator": "<", "threshold": 9, "metric": NUM}},
    ],
    ids=str,
)
def test_triggers_that_fire_at_once(lc, gm, trigger):
    begin(lc, gm, trigger=trigger)
    gm.expect(train_ready(1))


@pytest.mark.parametrize(
    ("trigger", "reason", "words"),
    [
        ({"condition": {"operator": ">", "threshold": 8, "metric": NUM}}, "samples", "8 is not > 8"),
        ({"condition": {"operator": ">", "threshold": 1, "metric": "accuracy"}}, "metric", "accuracy"),
    ],
    ids=str,
)
def test_triggers_that_do_not_fire_say_why(lc, gm, trigger, reason, words):
    begin(lc, gm, trigger=trigger)
    state = eventually(lambda: (s := lc.job()) and s["verdict"] and s["verdict"]["reason"] == reason and s)
    assert words in state["verdict"]["detail"]
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"] == 1)
    assert len(gm.up) == 1


def test_no_train_sample_means_no_training_whatever_the_trigger_says(lc, gm):
    begin(lc, gm, train_prob=0, trigger={"condition": {"operator": ">=", "threshold": 0, "metric": NUM}})
    state = eventually(lambda: (s := lc.job()) and s["verdict"] and s["samples"]["seen"] == 10 and s)
    assert (state["verdict"]["reason"], state["samples"]["eval_pending"]) == ("no_samples", 10)


def test_without_eval_samples_the_eval_file_is_empty_and_reported(lc, gm):
    begin(lc, gm, train_prob=1)
    gm.expect(train_ready(1))
    gm.move(*trained(1))
    assert gm.next_up()["content"]["input"]["dataURL"] == "/output/job1/data/eval/1/data.txt"
    assert lc.file("/output/job1/data/eval/1/data.txt").read_bytes() == b""
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == lines(0, 10)


def test_samples_that_trickle_in_one_by_one_are_split_as_one_batch_would_be(lc, gm):
    begin(lc, gm, 1, train_prob=0.29, trigger={"condition": {"operator": ">=", "threshold": 29, "metric": NUM}})
    for number in range(1, 100, 9):
        lc.append("/data/ds.txt", lines(number, min(number + 9, 100)))
        eventually(lambda number=number: lc.job() and lc.job()["samples"]["seen"] == min(number + 9, 100))
    reports = eventually(lambda: [m.json["content"] for m in gm.up if "phase" in m.json["content"]])
    assert reports == [train_ready(1)]
    assert lc.job()["samples"]["train_total"] == 29


def test_an_adopted_job_stays_in_its_round_and_reports_the_file_that_is_there(lc, gm):
    lc.write("/data/ds.txt", lines(0, 10))
    lc.write("/output/job1/data/eval/4/data.txt", "written by another controller\n")
    gm.dataset()
    gm.expect({"numberOfSamples": 10})
    gm.job(
        "job1",
        condition("Train", "Ready", at(1), {"input": train_ready(4)["input"]}),
        condition("Train", "Completed", at(2), output("/output/job1/train/4/index.pkl")),
        condition("Eval", "Waiting", at(3)),
    )
    assert gm.next_up()["content"]["input"]["dataURL"] == "/output/job1/data/eval/4/data.txt"
    assert lc.file("/output/job1/data/eval/4/data.txt").read_text() == "written by another controller\n"
    gm.move(condition("Eval", "Failed", at(4)), condition("Train", "Waiting", at(5)))
    lc.append("/data/ds.txt", lines(10, 20))
    gm.expect({"numberOfSamples": 20}, train_ready(5))
    assert lc.file("/output/job1/data/train/5/data.txt").read_text() == lines(10, 18)


def test_another_url_of_the_dataset_is_another_file(lc, gm):
    begin(lc, gm)
    gm.expect(train_ready(1))
    gm.move(condition("Train", "Failed", at(1)), condition("Train", "Waiting", at(2)))
    lc.write("/data/other.txt", lines(50, 60))
    gm.dataset(url="/data/other.txt")
    gm.expect_all({"numberOfSamples": 0}, {"numberOfSamples": 10}, train_ready(2))
    assert lc.file("/output/job1/data/train/2/data.txt").read_text() == lines(50, 58)


def test_a_job_may_turn_to_another_dataset(lc, gm):
    begin(lc, gm)
    gm.expect(train_ready(1))
    lc.write("/data/other.txt", lines(50, 60))
    gm.dataset("other", url="/data/other.txt")
    gm.expect({"numberOfSamples": 10})
    gm.job("job1", condition("Train", "Waiting", at(0)), condition("Train", "Failed", at(1)), dataset="other")
    gm.move(condition("Train", "Waiting", at(2)))
    gm.expect(train_ready(2))
    assert lc.file("/output/job1/data/train/2/data.txt").read_text() == lines(50, 58)
