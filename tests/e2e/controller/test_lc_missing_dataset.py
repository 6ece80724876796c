"""A job whose data is not there yet waits, says so, and starts when the data appears, without any tick or poll."""

from __future__ import annotations

import pytest
from support.played_gm import train_ready
from support.sedna import DATASET
from support.waiting import eventually

TEN = "".join(f"s{i}\n" for i in range(10))


def waits_for(lc, words: str) -> dict:
    """The verdict, once it names the dataset as the reason."""

    def verdict():
        state = lc.job()
        return state and state["verdict"] and state["verdict"]["reason"] == "dataset" and state["verdict"]

    found = eventually(verdict, what=str(lc.job()))
    assert words in found["detail"]
    assert found["fired"] is False
    return found


@pytest.mark.parametrize("folder", ["there", "missing"])
def test_a_dataset_file_that_does_not_exist_yet(lc, gm, folder):
    if folder == "there":
        lc.file("/data").mkdir()
    gm.dataset()
    state = eventually(lambda: (s := lc.latest("state/{node}/datasets/default/ds")) and s["error"] and s)
    assert "/data/ds.txt" in state["error"]
    assert state["samples"] == 0
    gm.job()
    waits_for(lc, "/data/ds.txt")
    lc.write("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 10}, train_ready(1))
    eventually(lambda: lc.latest("state/{node}/datasets/default/ds")["error"] is None)
    assert lc.errors() == []


def test_a_dataset_resource_that_comes_after_its_job(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.job()
    waits_for(lc, "default/ds")
    gm.dataset()
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))


def test_a_job_is_told_as_soon_as_what_is_wrong_with_its_data_changed(lc, gm):
    lc.file("/data").mkdir()
    gm.job()
    waits_for(lc, "default/ds")
    gm.dataset()
    eventually(lambda: "/data/ds.txt" in lc.job()["verdict"]["detail"])
    lc.write("/data/ds.txt", "")
    eventually(lambda: lc.job()["verdict"]["reason"] == "no_samples")
    gm.delete("ds", DATASET)
    waits_for(lc, "default/ds")
    with lc.journal() as journal:
        rows = journal.rows.rows(stream="default/lifelonglearningjob/job1")
    assert {(row.name, b'"cause":"dataset"' in row.state) for row in rows[1:]} == {("Ticked", True)}
    assert 3 <= len(rows) - 1 <= 4  # the file may be looked at before the job is told of the resource


def test_a_dataset_that_is_deleted_keeps_its_job_waiting_and_goes_on_when_it_is_back(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job(trigger={"condition": {"operator": ">", "threshold": 12, "metric": "num_of_samples"}})
    gm.expect({"numberOfSamples": 10})
    eventually(lambda: lc.job() and lc.job()["samples"]["seen"] == 10)
    gm.delete("ds", DATASET)
    assert eventually(lambda: lc.tap.of(lc.topic("state/{node}/datasets/default/ds"))[-1].payload == b"")
    lc.append("/data/ds.txt", TEN)
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"] == 1)
    assert lc.job()["samples"]["seen"] == 10
    gm.dataset()
    gm.expect_all({"numberOfSamples": 10}, {"numberOfSamples": 20}, train_ready(1))  # a new object is told where it is
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == "".join(
        f"s{i}\n" for i in (*range(8), *range(8))
    )


def test_an_unreadable_dataset_is_said_once_and_read_when_it_can_be(lc, gm):
    lc.file("/data/ds.txt").mkdir(parents=True)
    gm.dataset()
    gm.job()
    waits_for(lc, "/data/ds.txt")
    before = lc.job()["counts"]["ticks"]
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"] == before + 1)
    with lc.journal() as journal:
        names = [row.name for row in journal.rows.rows(stream="default/dataset/ds")]
    assert names == ["GlobalManagerMessageReceived", "DatasetUnreadable"]
    lc.file("/data/ds.txt").rmdir()
    lc.write("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 10}, train_ready(1))


def test_an_output_folder_that_cannot_be_written_is_tried_again_until_it_can(lc, gm):
    lc.write("/output", "a file where a folder should be")
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 10})
    events = lc.tap.wait_for(
        lambda m: m.topic == lc.topic("events/{node}/jobs/default/job1") and "TriggerFailed" in m.json["type"]
    )
    assert events.json["data"]["stage"] == "Train"
    assert events.json["data"]["error"]
    lc.file("/output").unlink()
    gm.expect(train_ready(1))
