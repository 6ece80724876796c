"""What comes twice has one effect; what is new under an old name begins anew."""

from __future__ import annotations

import pytest
from support.played_gm import PlayedGm, at, train_ready, trained
from support.sedna import JOB, condition, down_payload, job_resource
from support.waiting import eventually

TEN = "".join(f"s{i}\n" for i in range(10))


def ready(lc, gm) -> dict:
    """Job1 has reported round 1 on ten samples; returns the report."""
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    _, report = gm.expect({"numberOfSamples": 10}, train_ready(1))
    return report


def settled(lc, gm) -> dict:
    """Pass one more message through, so that all before it have had their effect; returns the state after it."""
    before = lc.job()["counts"]["worker_results"]
    gm.result(id=f"settle-{before}", status="running", name="settler", worker="settler")
    gm.next_up()
    return eventually(lambda: (s := lc.job())["counts"]["worker_results"] == before + 1 and s)


def test_a_message_with_a_known_id_is_counted_and_answered_by_the_state_but_has_no_second_effect(lc, gm):
    ready(lc, gm)
    topic = lc.topic(f"down/{{node}}/{JOB}/default/job1")
    resource = job_resource(condition("Train", "Waiting", at(500)), output_dir="/output/other")
    lc.append("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 20})
    lc.tap.publish(topic, down_payload(resource, message_id="m-2"))  # the id of the insert
    state = eventually(lambda: (s := lc.job())["counts"]["duplicates"] == 1 and s)
    assert (state["round"], state["gm_message"], state["counts"]["gm_messages"]) == (1, "m-2", 1)
    assert settled(lc, gm)["round"] == 1
    assert not lc.file("/output/other").exists()


def test_a_message_without_an_id_that_equals_the_last_is_a_repeat(lc):
    gm = PlayedGm(lc, with_ids=False)
    ready(lc, gm)
    gm.again()
    gm.move(condition("Train", "Running", at(1)))
    gm.again()
    gm.again()
    counts = settled(lc, gm)["counts"]
    assert (counts["gm_messages"], counts["duplicates"]) == (2, 3)


def test_a_result_without_an_id_is_a_repeat_until_the_condition_changed(lc):
    gm = PlayedGm(lc, with_ids=False)
    ready(lc, gm)
    for _ in range(3):
        gm.result(status="running")
    gm.move(condition("Train", "Running", at(1)))
    gm.result(status="running")
    counts = eventually(lambda: (s := lc.job()["counts"])["worker_results"] == 2 and s)
    assert counts["duplicates"] == 2
    assert len(lc.tap.wait_for_count(4, lambda m: m.topic == lc.topic("worker/{node}/w1/done"))) == 4


def test_a_waiting_condition_that_was_reported_never_starts_a_new_round(lc, gm):
    report = ready(lc, gm)
    lc.append("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 20})
    for _ in range(3):
        gm.again()  # a new id each time, as after GM's own restart
    state = settled(lc, gm)
    assert (state["round"], state["samples"]["train_pending"]) == (1, 8)
    assert [m.json["id"] for m in gm.all_up()].count(report["id"]) == 1  # asked within 60 s of the first sending
    gm.move(condition("Train", "Failed", at(1)), condition("Train", "Waiting", at(2)))
    gm.expect(train_ready(2))
    gm.job()  # GM has forgotten all that came after
    assert settled(lc, gm)["round"] == 2


def test_a_changed_spec_applies_at_once_and_makes_no_new_waiting_condition(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job(trigger={"condition": {"operator": ">", "threshold": 100, "metric": "num_of_samples"}})
    gm.expect({"numberOfSamples": 10})
    eventually(lambda: (s := lc.job()) and s["verdict"] and s["verdict"]["reason"] == "samples")
    gm.job(trigger={"condition": {"operator": ">=", "threshold": "8", "metric": "num_of_samples"}})
    gm.expect(train_ready(1))
    gm.job(trigger={"condition": {"operator": ">=", "threshold": 1, "metric": "num_of_samples"}})
    lc.append("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 20})
    assert settled(lc, gm)["round"] == 1


@pytest.mark.parametrize("how", ["delete", "uid"])
def test_a_new_object_under_an_old_name_begins_anew_with_all_that_the_dataset_holds(lc, gm, how):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job(uid="u-1")
    gm.expect({"numberOfSamples": 10}, train_ready(1))
    gm.move(*trained(1))
    gm.next_up()
    lc.append("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 20})
    file = lc.file("/output/job1/data/train/1/data.txt")
    before = file.stat().st_ino
    if how == "delete":
        gm.delete()
    gm.job(uid="u-2")
    gm.expect(train_ready(1))
    state = eventually(lambda: (s := lc.job()) and s["generation"] == 2 and s["triggers"]["train"] == "completed" and s)
    assert (state["round"], state["samples"]["seen"]) == (1, 20)
    assert file.read_text().count("\n") == 16
    assert file.stat().st_ino != before
    assert file.stat().st_mode & 0o777 == 0o644
    assert file.parent.stat().st_mode & 0o777 == 0o755


def test_jobs_of_one_dataset_each_get_all_of_it(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job("job1")
    gm.job("job2", train_prob=0.5)
    gm.expect_all({"numberOfSamples": 10}, train_ready(1, "job1"), train_ready(1, "job2"))
    lc.append("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 20})
    gm.move(condition("Train", "Failed", at(1)), condition("Train", "Waiting", at(2)), name="job2")
    gm.expect(train_ready(2, "job2"))
    assert lc.file("/output/job2/data/train/2/data.txt").read_text() == "".join(f"s{i}\n" for i in range(5))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == "".join(f"s{i}\n" for i in range(8))


def test_an_unconfirmed_report_is_repeated_by_itself_under_the_same_id(lc):
    gm = PlayedGm(lc, with_ids=False)
    report = ready(lc, gm)
    heard = lc.tap.wait_for_count(2, lambda m: "/up/" in m.topic and m.json["id"] == report["id"], timeout=30)
    assert heard[0].payload == heard[1].payload
    assert len(gm.up) == 2
