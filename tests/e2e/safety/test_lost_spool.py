"""Spool files that somebody deletes, cuts, overwrites: read again from the dataset's file, else said; others go on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready, trained
from support.sedna import condition
from support.spool_losses import cut_data, delete_files
from support.waiting import eventually

SAMPLES = "".join(f"s{number}\n" for number in range(10))


@pytest.fixture
def lc(shared_mosquitto, topic_root: str, tmp_path: Path) -> Iterator[ControllerProcess]:
    with ControllerProcess(
        tmp_path, port=shared_mosquitto.port, topic_root=topic_root, dataset_seconds=0.5
    ) as controller:
        yield controller
        assert_invariants(controller)


@pytest.fixture
def gm(lc: ControllerProcess) -> PlayedGm:
    """GM, whose job has all samples pending and may not train yet; 10 train, 0 evaluate."""
    player = PlayedGm(lc)
    lc.write("/data/ds.txt", SAMPLES)
    player.dataset()
    player.job(train_prob=1.0, trigger=more_than(10))
    player.expect({"numberOfSamples": 10})
    eventually(lambda: (job := lc.job()) and job["samples"]["train_pending"] == 10)
    return player


def more_than(threshold: int) -> dict:
    return {"condition": {"operator": ">", "threshold": threshold, "metric": "num_of_samples"}}


def spool_of(lc: ControllerProcess) -> Path:
    return lc.state_dir / "spool/default/ds"


def cut_index(spool: Path) -> None:
    for path in spool.glob("*.index"):
        os.truncate(path, 20)


def overwrite_data(spool: Path) -> None:
    for path in spool.glob("*.data"):
        path.write_bytes(bytes(path.stat().st_size))


def overwrite_index(spool: Path) -> None:
    for path in spool.glob("*.index"):
        path.write_bytes(b"\xff" * path.stat().st_size)


def repeat_last_end(spool: Path) -> None:
    for path in spool.glob("*.index"):
        path.write_bytes(path.read_bytes()[:-16] + path.read_bytes()[-32:-16])


def put_pipes(spool: Path) -> None:
    for path in spool.iterdir():
        path.unlink()
        os.mkfifo(path)


def put_folders(spool: Path) -> None:
    for path in spool.iterdir():
        path.unlink()
        path.mkdir()


LOSSES = {
    "folder": shutil.rmtree,
    "files": delete_files,
    "data": cut_data,
    "index": cut_index,
    "data overwritten": overwrite_data,
    "index overwritten": overwrite_index,
    "last end repeated": repeat_last_end,
    "pipes": put_pipes,
    "folders": put_folders,
}


@pytest.mark.parametrize("when", ["running", "stopped"])
@pytest.mark.parametrize("loss", LOSSES)
def test_lost_samples_are_read_again_from_the_file_that_still_holds_them(lc, gm, loss, when):
    if when == "stopped":
        lc.stop()
    LOSSES[loss](spool_of(lc))
    if when == "stopped":
        lc.start()
    lc.append("/data/ds.txt", "s10\n")
    gm.expect({"numberOfSamples": 11}, train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == SAMPLES + "s10\n"
    # Between the ends of what is read no entry of the index is needed, as the checksum of what follows shows.
    is_needed = when == "stopped" or LOSSES[loss] not in {overwrite_index, repeat_last_end}
    assert ("that the spool had lost: read again from the dataset's file" in lc.log) is is_needed


def test_of_many_pieces_that_are_damaged_all_are_read_again_at_once(lc):
    gm = PlayedGm(lc)
    lc.write("/data/ds.txt", "")
    gm.dataset()
    gm.job(train_prob=0.8, trigger=more_than(43))
    for batch in range(10):
        lc.append("/data/ds.txt", "".join(f"{batch}-{number}\n" for number in range(5)))
        gm.expect({"numberOfSamples": 5 * batch + 5})
    overwrite_data(spool_of(lc))
    lc.append("/data/ds.txt", "".join(f"10-{number}\n" for number in range(5)))
    gm.expect_all({"numberOfSamples": 55}, train_ready(1))
    assert len(lc.file("/output/job1/data/train/1/data.txt").read_text().splitlines()) == 44
    assert lc.log.count("that the spool had lost: read again from the dataset's file") == 1
    assert len(failures(lc)) == 1


def test_jobs_that_took_the_same_records_at_other_times_both_get_them_back(lc):
    gm = PlayedGm(lc)
    lc.write("/data/table.csv", 'n,text\r\n0,"two\nlines"\r\n1,b\r\n')
    gm.dataset("table", url="/data/table.csv", format_="csv")
    gm.job("early", dataset="table", train_prob=0.5, trigger=more_than(10))
    gm.expect({"numberOfSamples": 2})
    lc.append("/data/table.csv", "2,c\r\n3,d\r\n")
    gm.expect({"numberOfSamples": 4})
    gm.job("late", dataset="table", train_prob=1.0, trigger=more_than(10))
    eventually(lambda: lc.job("late")["samples"]["seen"] == 4 and lc.job("early")["samples"]["seen"] == 4)
    lc.stop()
    shutil.rmtree(lc.state_dir / "spool")
    lc.start()
    gm.job("early", dataset="table", train_prob=0.5, trigger=more_than(1))
    gm.job("late", dataset="table", train_prob=1.0, trigger=more_than(1))
    gm.expect_all(train_ready(1, "early", "csv"), train_ready(1, "late", "csv"))
    early, late = (lc.file(f"/output/{job}/data/train/1/data.csv").read_text() for job in ("early", "late"))
    assert early == 'n,text\n0,"two\nlines"\n2,c\n'
    assert late == 'n,text\n0,"two\nlines"\n1,b\n2,c\n3,d\n'
    gm.move(*trained(1, "early"), name="early")
    assert gm.next_up()["content"]["phase"] == "Eval"
    assert lc.file("/output/early/data/eval/1/data.csv").read_text() == "n,text\n1,b\n3,d\n"


@pytest.mark.parametrize("loss", ["data overwritten", "index overwritten", "last end repeated", "pipes", "folders"])
def test_a_stage_that_finds_its_samples_damaged_has_them_read_again_without_a_notice(lc, gm, loss):
    LOSSES[loss](spool_of(lc))
    gm.job(train_prob=1.0, trigger=more_than(5))
    gm.expect(train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == SAMPLES


def test_samples_that_no_file_holds_any_more_are_named_and_tried_again_and_others_go_on(lc, gm):
    spool, copy = spool_of(lc), spool_of(lc).with_name("copy")
    shutil.copytree(spool, copy)
    gm.job(train_prob=1.0, trigger=more_than(100))
    lc.write("/data/ds.txt", "other\n")
    gm.expect({"numberOfSamples": 0}, {"numberOfSamples": 1})
    shutil.rmtree(spool)
    gm.job("job2", train_prob=1.0, trigger=more_than(0))
    gm.expect(train_ready(1, "job2"))
    assert lc.file("/output/job2/data/train/1/data.txt").read_text() == "other\n"

    gm.job(train_prob=1.0, trigger=more_than(5))
    failed = eventually(lambda: (found := failures(lc)) and "no longer holds them" in found[-1]["error"] and found)
    assert (failed[-1]["code"], failed[-1]["stage"]) == ("lost", "Train")
    assert str(spool) in failed[-1]["error"]
    assert "put the files back from a copy, or delete the job" in failed[-1]["error"]
    lc.append("/data/ds.txt", "more\n")
    gm.expect({"numberOfSamples": 2})
    eventually(lambda: (job := lc.job("job2")) and job["samples"]["seen"] == 2)
    assert len(failures(lc)) <= 2
    assert len([line for line in lc.log.splitlines() if "10 samples that jobs need are lost" in line]) == 1

    for path in copy.iterdir():
        path.rename(spool / path.name)
    gm.expect(train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == SAMPLES + "other\n"


def test_a_stage_that_is_under_way_goes_on_with_the_samples_that_were_read_again(lc, gm):
    lc.stop()
    shutil.rmtree(spool_of(lc))
    lc.start()
    gm.job(train_prob=1.0, trigger=more_than(0))
    gm.expect(train_ready(1))
    gm.move(condition("Train", "Ready", "2024-01-01T00:00:10Z"))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == SAMPLES


def failures(lc: ControllerProcess) -> list[dict]:
    """What was said of job1's effects that fail."""
    events = lc.tap.of(lc.topic("events/{node}/jobs/default/job1"))
    return [m.json["data"] for m in events if m.json["type"].endswith(".TriggerFailed.v1")]


def test_samples_of_a_dataset_that_was_taken_away_are_had_again_once_it_is_back(lc, gm):
    gm.delete("ds", kind="dataset")
    eventually(lambda: lc.latest("state/{node}/datasets/default/ds") is None)
    shutil.rmtree(spool_of(lc))
    gm.job(train_prob=1.0, trigger=more_than(5))
    eventually(lambda: "is not here: put the files back" in failures(lc)[-1]["error"])
    gm.dataset()
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == SAMPLES
