"""`kill -9` at the moments that matter, and at any other."""

from __future__ import annotations

import time

from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, deployed, evaluated, train_ready, trained
from support.reactive_gm import ReactiveGm
from support.waiting import eventually

KILLS = 12


def test_killed_at_the_six_moments_of_a_round_it_goes_on_exactly_where_it_was(lc, gm):
    lc.write("/data/ds.txt", lines(0, 4))
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 4})
    eventually(lambda: lc.job()["samples"]["train_pending"] == 3)

    killed_while_samples_are_pending(lc)
    lc.append("/data/ds.txt", lines(4, 10))
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    train_file = lc.file("/output/job1/data/train/1/data.txt")
    before = train_file.stat()

    lc.restart(kill=True)  # after Train/Ready
    gm.result(status="running", id="r-1")
    assert gm.next_up()["content"]["status"] == "running"

    lc.restart(kill=True)  # while training
    gm.result(status="completed", id="r-2")
    assert gm.next_up()["content"]["status"] == "completed"
    lc.write("/output/job1/train/1/index.pkl", "trained")
    gm.move(*trained(1))
    assert eval_ready(gm) == 1

    lc.restart(kill=True)  # at Eval/Waiting
    lc.write("/output/job1/eval/1/index.pkl", "evaluated")
    gm.move(*evaluated(1))
    assert gm.next_up()["content"]["phase"] == "Deploy"

    lc.restart(kill=True)  # at Deploy/Waiting
    gm.move(*deployed(1))
    eventually(lambda: (lc.job()["stage"], lc.job()["type"]) == ("Train", "Waiting"))

    lc.restart(kill=True)  # after the round
    lc.append("/data/ds.txt", lines(10, 15))
    gm.expect_all({"numberOfSamples": 15}, train_ready(2))
    assert train_file.read_text() == lines(0, 3) + lines(4, 9)
    assert (train_file.stat().st_ino, train_file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert lc.file("/output/job1/data/train/2/data.txt").read_text() == lines(10, 14)
    assert lc.file("/output/job1/deploy/index.pkl").read_text() == "evaluated"
    assert len(gm.up) == 9
    assert_invariants(lc, [f"m-{number}" for number in range(1, 6)])


def killed_while_samples_are_pending(lc: ControllerProcess) -> None:
    lc.restart(kill=True)
    assert lc.job()["samples"]["train_pending"] == 3


def eval_ready(gm: PlayedGm) -> int:
    content = gm.next_up()["content"]
    assert (content["phase"], content["status"]) == ("Eval", "Ready")
    return int(content["input"]["outputDir"].rpartition("/")[2])


def test_killed_at_random_it_loses_nothing_and_does_nothing_twice(lc, accidents, minutes):
    names = [f"job{number}" for number in range(3)]
    written = 0
    with ReactiveGm(lc) as gm:
        lc.write("/data/ds.txt", "")
        gm.dataset("ds", "/data/ds.txt")
        for name in names:
            gm.job(name)
        deadline = time.monotonic() + minutes * 60
        kills = 0
        while kills < KILLS or time.monotonic() < deadline:
            more = accidents.randrange(1, 9)
            lc.append("/data/ds.txt", lines(written, written + more))
            written += more
            wait_randomly(lc, accidents)
            lc.restart(kill=True)
            kills += 1
        lc.append("/data/ds.txt", lines(written, written + 30))
        written += 30
        eventually(lambda: all(has_seen(lc, name, written) for name in names), 60, f"{written} samples seen")
        eventually(lambda: all(is_quiet(lc, name) for name in names), 60, "the rounds to end")
        assert gm.error is None
        assert_invariants(lc, gm.sent)
        print(f"{kills} kills, {sum(gm.rounds.values())} rounds, {written} samples")  # noqa: T201 - for the long run
        assert all(gm.rounds[name] > 1 for name in names)


def wait_randomly(lc: ControllerProcess, accidents) -> None:
    """Until one of the next 30 messages is heard, whichever chance names."""
    heard = len(lc.tap.messages) + accidents.randrange(30)
    deadline = time.monotonic() + 0.4
    while len(lc.tap.messages) < heard and time.monotonic() < deadline:
        time.sleep(0.002)


def has_seen(lc: ControllerProcess, name: str, count: int) -> bool:
    state = lc.job(name)
    return bool(state) and state["samples"]["seen"] == count


def is_quiet(lc: ControllerProcess, name: str) -> bool:
    state = lc.job(name)
    stands = (state["stage"], state["type"], state["triggers"]["train"])
    return stands == ("Train", "Waiting", "ready") and state["samples"]["train_pending"] <= 3


def lines(first: int, last: int) -> str:
    return "".join(f"sample {number}\n" for number in range(first, last))
