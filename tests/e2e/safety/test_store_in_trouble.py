"""A store that cannot be written for a while, and one that is damaged."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator

import pytest
from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.waiting import eventually

JOB2 = "default/lifelonglearningjob/job2"
LOCKED_SECONDS = 10
SAID = "nothing is acknowledged until it works again"


@contextlib.contextmanager
def locked(lc: ControllerProcess) -> Iterator[None]:
    """Another process, this one, is writing."""
    connection = sqlite3.connect(lc.state_dir / "events.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def stands(lc: ControllerProcess, gm: PlayedGm) -> None:
    lc.write("/data/ds.txt", "a\nb\n")
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 2})
    eventually(lambda: lc.job() and lc.job()["samples"]["seen"] == 2)


def send_results(gm: PlayedGm, ids: list[str]) -> None:
    for message_id in ids:
        gm.result(id=message_id, status="running", results=[{"format": "pkl", "url": "x" * 500}])


def done(lc: ControllerProcess) -> list[str]:
    return [m.json["id"] for m in lc.tap.of(lc.topic("worker/{node}/w1/done"))]


@pytest.mark.parametrize("is_killed", [False, True])
def test_without_space_nothing_is_acknowledged_and_with_space_it_carries_on(lc, gm, is_killed):
    stands(lc, gm)
    before, more = [f"a-{n}" for n in range(20)], [f"b-{n}" for n in range(20)]
    with lc.no_space():
        send_results(gm, before)
        eventually(lambda: SAID in lc.log)
        send_results(gm, more)
        lc.append("/data/ds.txt", "c\n")
        assert len(done(lc)) < len(before)
        if is_killed:
            lc.kill()
    if is_killed:
        lc.start()
    eventually(lambda: set(done(lc)) >= {*before, *more}, 20)
    eventually(lambda: gm.up[-1].json["content"] == {"numberOfSamples": 3} or lc.job()["samples"]["seen"] == 3, 20)
    assert_invariants(lc, [*before, *more])
    assert is_killed or "the store works again" in lc.log


def test_a_store_that_another_process_locks_is_waited_for(lc, gm):
    stands(lc, gm)
    with locked(lc):
        began = time.monotonic()
        send_results(gm, ["a-1"])
        eventually(lambda: SAID in lc.log, 15)
        # a duration: an attempt waits 5 s for the lock, and of the second one that fails nobody is told
        eventually(lambda: time.monotonic() - began > LOCKED_SECONDS, 15)
        assert done(lc) == []
    eventually(lambda: done(lc) == ["a-1"], 15)
    assert_invariants(lc, ["a-1"])


def test_sample_files_that_cannot_be_written_are_written_later(lc, gm):
    stands(lc, gm)
    lc.file("/output/job1/data").rename(lc.file("/output/job1/moved"))
    lc.write("/output/job1/data", "a file where the folder should be")
    lc.append("/data/ds.txt", "c\nd\ne\n")
    gm.expect({"numberOfSamples": 5})
    eventually(lambda: (lc.job() or {})["verdict"]["reason"] == "fired" and "TriggerFailed" in names(lc))
    lc.file("/output/job1/data").unlink()
    gm.expect(train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == "a\nc\nd\ne\n"
    assert_invariants(lc)


def names(lc: ControllerProcess) -> list[str]:
    journal = lc.journal()
    found = [row.name for row in journal.rows.rows()]
    journal.close()
    return found


def test_a_damaged_database_is_refused_in_words(lc, gm):
    stands(lc, gm)
    lc.stop()
    path = lc.state_dir / "events.db"
    data = bytearray(path.read_bytes())
    data[4096 : 4096 * 3] = b"\xa5" * 8192
    path.write_bytes(data)
    assert lc.exit_code() == 6
    assert "is damaged" in lc.log or "cannot be opened" in lc.log
    assert "Traceback" not in lc.log
    assert path.read_bytes() == data


def test_what_is_no_database_is_refused_in_words(lc):
    lc.stop()
    (lc.state_dir / "events.db").write_text("this is no database, but long enough to look like one" * 100)
    assert lc.exit_code() == 6
    assert "Traceback" not in lc.log


def test_one_history_that_cannot_be_read_stops_no_other_and_never_begins_anew(lc, gm):
    stands(lc, gm)
    gm.job("job2")
    eventually(lambda: lc.job("job2") and lc.job("job2")["samples"]["seen"] == 2)
    lc.stop()
    broken = tampered(lc, JOB2)
    lc.start()
    assert f"{JOB2} is left out" in lc.log

    gm.result(id="r-1", worker="w2", ownerName="job2")
    gm.again("job2")
    gm.delete("job2")
    errors = eventually(lambda: lc.errors()[2:] and lc.errors())
    assert [(error["code"], error["id"]) for error in errors] == [("integrity", i) for i in ("r-1", "m-4", "m-5")]
    assert rows_of(lc, JOB2) == broken

    lc.append("/data/ds.txt", "c\nd\ne\n")
    gm.expect_all({"numberOfSamples": 5}, train_ready(1))
    gm.result(id="r-2")
    assert gm.next_up()["id"].startswith("edge1/default/lifelonglearningjob/job1/")
    assert lc.latest("state/{node}/jobs/default/job2")["samples"]["seen"] == 2, "its last value stays"


def test_a_dataset_whose_history_cannot_be_read_leaves_its_jobs_waiting_with_the_reason(lc, gm):
    stands(lc, gm)
    lc.stop()
    tampered(lc, "default/dataset/ds")
    lc.start(tick_seconds=1)
    eventually(lambda: (lc.job() or {"counts": {"ticks": 0}})["counts"]["ticks"] > 0)
    gm.again()
    eventually(lambda: lc.job()["gm_message"] == gm.last_id)
    assert lc.errors() == []


def tampered(lc: ControllerProcess, stream: str) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(lc.state_dir / "events.db")) as connection, connection:
        connection.execute(
            "UPDATE stored_events SET state = replace(state, '20', '19') WHERE originator_id = ? AND"
            " originator_version = 1",
            (stream,),
        )
    return rows_of(lc, stream)


def rows_of(lc: ControllerProcess, stream: str) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(f"file:{lc.state_dir}/events.db?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT * FROM stored_events WHERE originator_id = ?", (stream,)).fetchall()
    assert found
    return found
