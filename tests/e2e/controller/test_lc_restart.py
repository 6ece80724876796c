"""After SIGTERM or kill -9 the controller goes on exactly where it was, without a word from GM."""

from __future__ import annotations

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, deployed, evaluated, train_ready, trained
from support.waiting import eventually

ENDS = pytest.mark.parametrize("kill", [False, True], ids=["SIGTERM", "kill -9"])


@pytest.fixture
def gm(lc) -> PlayedGm:
    """A GM that acknowledges nothing."""
    return PlayedGm(lc, with_ids=False)


def samples(first: int, last: int) -> str:
    return "".join(f"s{i}\n" for i in range(first, last))


def pending(lc, gm):
    lc.write("/data/ds.txt", samples(0, 4))
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 4})
    eventually(lambda: (s := lc.job()) and s["samples"]["train_pending"] == 3)


def train_reported(lc, gm):
    lc.write("/data/ds.txt", samples(0, 10))
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 10}, train_ready(1))
    shows(lc, "train", "completed")


def shows(lc, stage: str, status: str):
    """Wait for the published state, which may come 100 ms later than a report."""
    eventually(lambda: (s := lc.job()) and s["triggers"][stage] == status)


def eval_reported(lc, gm):
    train_reported(lc, gm)
    gm.move(*trained(1))
    assert gm.next_up()["content"]["input"]["dataURL"] == "/output/job1/data/eval/1/data.txt"
    shows(lc, "eval", "completed")


def deploy_reported(lc, gm):
    eval_reported(lc, gm)
    lc.write("/output/job1/eval/1/index.pkl", "model 1")
    gm.move(*evaluated(1))
    assert gm.next_up()["content"]["phase"] == "Deploy"
    shows(lc, "deploy", "completed")


def round_passed(lc, gm):
    deploy_reported(lc, gm)
    gm.move(*deployed(1))
    lc.append("/data/ds.txt", samples(10, 14))
    gm.expect({"numberOfSamples": 14})
    eventually(lambda: (s := lc.job())["stage"] == "Train" and s["samples"]["train_pending"] == 3)


def goes_on_from_pending(lc, gm):
    lc.append("/data/ds.txt", samples(4, 10))
    gm.expect({"numberOfSamples": 10}, train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == samples(0, 3) + samples(4, 9)


def goes_on_from_train(lc, gm):
    gm.move(*trained(1))
    assert gm.next_up()["content"]["phase"] == "Eval"
    assert lc.file("/output/job1/data/eval/1/data.txt").read_text() == samples(8, 10)


def goes_on_from_eval(lc, gm):
    lc.write("/output/job1/eval/1/index.pkl", "model 1")
    gm.move(*evaluated(1))
    assert gm.next_up()["content"]["phase"] == "Deploy"
    assert lc.file("/output/job1/deploy/index.pkl").read_text() == "model 1"


def goes_on_from_deploy(lc, gm):
    gm.move(*deployed(1))
    lc.append("/data/ds.txt", samples(10, 20))
    gm.expect({"numberOfSamples": 20}, train_ready(2))
    assert lc.file("/output/job1/data/train/2/data.txt").read_text() == samples(10, 18)


def goes_on_from_next_round(lc, gm):
    lc.append("/data/ds.txt", samples(14, 20))
    gm.expect({"numberOfSamples": 20}, train_ready(2))
    assert lc.file("/output/job1/data/train/2/data.txt").read_text() == samples(10, 13) + samples(14, 19)
    gm.move(*trained(2))
    assert gm.next_up()["content"]["input"]["dataURL"] == "/output/job1/data/eval/2/data.txt"
    evaluated_on = samples(8, 10) + samples(13, 14) + samples(19, 20)
    assert lc.file("/output/job1/data/eval/2/data.txt").read_text() == evaluated_on


MOMENTS = {
    "samples pending": (pending, goes_on_from_pending),
    "Train reported": (train_reported, goes_on_from_train),
    "Eval reported": (eval_reported, goes_on_from_eval),
    "Deploy reported": (deploy_reported, goes_on_from_deploy),
    "a round passed": (round_passed, goes_on_from_next_round),
}


@ENDS
@pytest.mark.parametrize("moment", MOMENTS)
def test_it_goes_on_where_it_was(lc, gm, moment, kill):
    come_to, go_on = MOMENTS[moment]
    come_to(lc, gm)
    before, files, reports = settled(lc), stamps(lc), len(gm.up)
    last_report = gm.up[-1].json
    session = lc.births()[-1].json["session"]
    end(lc, session, kill=kill)
    lc.start()
    eventually(lambda: len([m for m in gm.all_up() if m.json == last_report]) > 1, what="the report again")
    assert settled(lc) == before
    assert stamps(lc) == files
    assert len(gm.up) == reports
    go_on(lc, gm)
    assert {name: stamp for name, stamp in stamps(lc).items() if name in files} == files
    assert lc.errors() == []


@ENDS
def test_what_came_while_it_was_away_is_taken_up_in_order(lc, gm, kill):
    train_reported(lc, gm)
    end(lc, lc.births()[-1].json["session"], kill=kill)
    gm.result(id="r-1", results=[{"format": "pkl", "url": "/output/job1/train/1/index.pkl"}])
    gm.move(*trained(1))
    lc.append("/data/ds.txt", samples(10, 20))
    lc.write("/output/job1/eval/1/index.pkl", "model 1")
    gm.result(id="r-2", kind="eval")
    gm.move(*evaluated(1))
    lc.start()
    contents = [gm.next_up()["content"] for _ in range(5)]
    assert {"numberOfSamples": 20} in contents
    told = [f"{content['phase']}/{content['status']}" for content in contents if "phase" in content]
    assert [word for word in told if word.islower()] == ["train/completed", "eval/completed"]
    assert [word for word in told if not word.islower()] == ["Eval/Ready", "Deploy/Ready"]


@ENDS
def test_a_confirmed_report_is_not_repeated(lc, kill):
    gm = PlayedGm(lc, with_ids=True)
    train_reported(lc, gm)
    eventually(lambda: lc.job()["version"] == 5)
    count = len(gm.all_up())
    lc.restart(kill=kill)
    gm.result(status="running")
    gm.next_up()
    assert len(gm.all_up()) == count + 1


def test_unconfirmed_results_are_repeated_too_until_their_ids_are_acknowledged(lc, gm):
    train_reported(lc, gm)
    gm.result(id="r-1", results=[{"format": "pkl", "url": "u"}])
    result = gm.next_up()
    lc.restart()
    ids = [m.json["id"] for m in gm.up]
    eventually(lambda: [m.json["id"] for m in gm.all_up()].count(result["id"]) == 2)
    assert lc.job()["counts"]["worker_results"] == 1
    gm.ack(*ids)
    eventually(lambda: lc.job()["version"] >= 6)
    lc.restart(kill=True)
    gm.result(id="r-2", status="running")
    gm.next_up()
    assert [m.json["id"] for m in gm.all_up()].count(result["id"]) == 2


def test_a_second_controller_on_the_same_folder_is_refused(lc):
    second = ControllerProcess(lc.state_dir.parent, port=lc.tap.port, topic_root=lc.topic_root)
    second.start(wait=False)
    assert second.wait() == 4
    assert "is in use by process" in lc.log
    assert lc.is_running


def end(lc, session: str, *, kill: bool) -> None:
    """End the process; either way the broker says that this session is offline."""
    if kill:
        lc.kill()
    else:
        assert lc.stop() == 0
    status = lc.tap.wait_for(lambda m: m.topic == lc.topic("state/{node}/status") and m.json["state"] == "offline")
    assert status.json["session"] == session


def settled(lc) -> dict:
    """The state, without what a tick or a confirmation after the restart may change."""
    state = lc.job()
    return {key: value for key, value in state.items() if key not in ("version", "updated", "verdict", "counts")}


def stamps(lc) -> dict[str, tuple[int, int]]:
    """Inode and time of change of all files written so far."""
    found = {}
    for path in sorted(lc.file("/output").rglob("*")):
        if path.is_file():
            stat = path.stat()
            found[str(path)] = (stat.st_ino, stat.st_mtime_ns)
    return found
