"""The process ends at each named step of the flow and is started again: nothing is lost, nothing happens twice."""

from __future__ import annotations

import pytest
from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.reactive_gm import ReactiveGm
from support.reviver import Reviver
from support.waiting import eventually

from lc_events.faults import STEPS

SECRET = "c2VjcmV0IG9mIHRoZSB0ZXN0"


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_changes_nothing(step, shared_mosquitto, topic_root, tmp_path):
    lc = ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, test_crash=step)
    lc.write("/data/ds.txt", lines(0, 10))
    with lc, ReactiveGm(lc) as gm, Reviver(lc) as reviver:
        gm.dataset("ds", "/data/ds.txt")
        gm.job("job1", annotations={"sedna.io/credential": SECRET})
        lc.tap.publish(lc.topic("down/{node}/pod/default/never"), "no JSON")
        eventually(lambda: has_deployed(lc, 1), 30, "round 1")
        for path in (lc.state_dir / "spool/default/ds").iterdir():
            path.unlink()  # round 2 evaluates with two of its samples again: they are restored
        lc.append("/data/ds.txt", lines(10, 20))
        eventually(lambda: has_deployed(lc, 2), 30, "round 2")
        streams = assert_invariants(lc, gm.sent)
        assert gm.error is None
        assert reviver.deaths == 1, f"{step} was not passed"
    trained = [lc.file(f"/output/job1/data/train/{number}/data.txt").read_text() for number in (1, 2)]
    assert trained == [lines(0, 8), lines(10, 18)]
    assert lc.file("/output/job1/data/eval/2/data.txt").read_text() == lines(8, 10) + lines(18, 20)
    assert lc.file("/output/job1/deploy/index.pkl").read_text() == "model job1 eval 2"
    assert len(streams) == 2


def has_deployed(lc: ControllerProcess, number: int) -> bool:
    state = lc.job()
    stands = ("Train", "Waiting", number)
    return bool(state and state["model"]) and (state["stage"], state["type"], state["model"]["round"]) == stands


def lines(first: int, last: int) -> str:
    return "".join(f"sample {number}\n" for number in range(first, last))
