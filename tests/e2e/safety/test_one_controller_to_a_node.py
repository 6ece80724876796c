"""Two controllers of one node, on one machine and on two."""

from __future__ import annotations

import shutil

from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.waiting import eventually


def another(lc: ControllerProcess, tmp_path, port: int, **settings: object) -> ControllerProcess:
    """A controller of the same name with a state folder of its own."""
    return ControllerProcess(tmp_path / "other", port=port, topic_root=lc.topic_root, **settings)


def test_a_second_one_on_the_same_state_folder_is_told_who_has_it(lc, tmp_path, shared_mosquitto):
    second = another(lc, tmp_path, shared_mosquitto.port, state_dir=lc.state_dir)
    second.root.mkdir(parents=True)
    assert second.exit_code() == 4
    assert f"in use by process {lc.pid}" in second.log
    assert lc.is_running


def test_a_second_one_on_another_machine_does_not_start(lc, gm, tmp_path, shared_mosquitto):
    second = another(lc, tmp_path, shared_mosquitto.port)
    second.root.mkdir(parents=True)
    assert second.exit_code() == 6
    assert "--take-over" in second.log
    lc.write("/data/ds.txt", "a\n")
    gm.dataset()
    gm.expect({"numberOfSamples": 1})
    assert len(lc.births()) == 1


def test_one_that_takes_over_makes_the_first_give_way(lc, tmp_path, shared_mosquitto):
    second = another(lc, tmp_path, shared_mosquitto.port)
    second.root.mkdir(parents=True)
    second.tap.start()
    second.start(arguments=["--take-over"])
    try:
        assert lc.wait_for_exit() == 6
        assert second.is_running
        assert [m.retain for m in second.births()] == [True, False]
    finally:
        second.kill()
        second.tap.stop()


def test_the_name_of_one_that_is_gone_is_free_though_its_status_says_online(lc, shared_mosquitto):
    lc.kill()
    eventually(lambda: lc.latest("state/{node}/status")["state"] == "offline")
    lc.tap.publish(
        lc.topic("state/{node}/status"), {"state": "online", "session": "of a box without power"}, retain=True
    )
    lc.start()


def test_another_node_does_not_go_on_with_a_history_that_is_not_its_own(lc, gm):
    lc.write("/data/ds.txt", "a\n")
    gm.dataset()
    gm.expect({"numberOfSamples": 1})
    lc.stop()
    lc.start(wait=False, node="edge2")
    assert lc.wait_for_exit() == 4
    assert "is the history of node edge1, not of edge2: set LC_NODE=edge1" in lc.log
    lc.start()


def test_a_store_that_was_restored_from_a_copy_says_so_and_goes_on(lc, gm):
    lc.write("/data/ds.txt", "".join(f"{n}\n" for n in range(10)))
    gm.dataset()
    gm.job()
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    lc.stop()
    copy = lc.state_dir.with_name("copy")
    shutil.copytree(lc.state_dir, copy)
    lc.start()
    gm.result(id="r-1")
    assert gm.next_up()["content"]["status"] == "completed"
    eventually(lambda: lc.job()["counts"]["worker_results"] == 1)
    eventually(lambda: lc.latest("state/{node}/heads/default/job1")["version"] == lc.job()["version"])
    lc.kill()
    shutil.rmtree(lc.state_dir)
    copy.rename(lc.state_dir)
    lc.start()
    error = eventually(lc.errors)[0]
    assert error["code"] == "history"
    assert error["topic"] == lc.topic("state/{node}/heads/default/job1")
    assert "default/lifelonglearningjob/job1: the broker has seen version" in error["error"]
    assert error["error"] in lc.log
    lc.append("/data/ds.txt", "more\n")
    gm.expect({"numberOfSamples": 11})
    assert_invariants(lc)


def test_a_wiped_store_says_so_and_begins_anew(lc, gm: PlayedGm):
    lc.write("/data/ds.txt", "".join(f"{n}\n" for n in range(10)))
    gm.dataset()
    gm.job()
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    eventually(lambda: lc.latest("state/{node}/heads/default/job1"))
    lc.kill()
    shutil.rmtree(lc.state_dir)
    lc.start()
    assert "this store ends at 0" in eventually(lc.errors)[0]["error"]
    gm.dataset()
    gm.job()
    eventually(lambda: lc.job() and lc.job()["round"] == 1)
    assert_invariants(lc)
