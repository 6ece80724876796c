from __future__ import annotations

import json

import pytest
from support.link import Link
from support.local_controller import ControllerProcess
from support.prepared import TESTER, give_bridge_password, prepare
from support.program import EXAMPLES, Program
from support.sedna import JOB, condition, job_resource
from support.tap import Tap
from support.waiting import eventually

SCRIPT = EXAMPLES / "subscriber" / "subscriber.py"
RESULT = {"name": "w1", "ownerName": "job1", "ownerKind": JOB, "kind": "train", "status": "running", "results": []}


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_across_a_bridge_that_fails_with_a_devices_rights_it_ends_equal_to_the_controller(tmp_path, protocol):
    cloud = prepare("cloud", tmp_path / "cloud", "edge1")
    give_bridge_password(cloud, tmp_path / "edge1", "edge1")
    with Link(cloud.port) as link, cloud.broker():
        edge = prepare("edge", tmp_path / "edge1", "edge1", options=("--cloud", f"127.0.0.1:{link.port}"))
        impatient = edge.config.read_text().replace("restart_timeout 1 15", "restart_timeout 1 1")
        edge.config.write_text(impatient)
        lc = ControllerProcess(tmp_path, port=edge.port, topic_root="sedna", mqtt_url=edge.url("lc-edge1"))
        lc.tap = Tap(edge.port, "sedna/#", **edge.login(TESTER))
        with edge.broker(), lc:
            header = {"namespace": "default", "resourceKind": JOB, "resourceName": "job1", "operation": "insert"}
            resource = job_resource(condition("Train", "Waiting", "2024-01-01T00:00:00Z"))
            lc.tap.publish(f"sedna/down/edge1/{JOB}/default/job1", {"id": "m1", "header": header, "content": resource})
            work(lc, 2)
            arguments = ("--node", "edge1", "--url", cloud.url("device"), "--mqtt", protocol)
            with Program(tmp_path / "subscriber", SCRIPT, "job1", *arguments) as program:
                program.says("chain checked")
                link.cut()
                lc.tap.wait_for(lambda message: message.topic.endswith("/link") and message.payload == b"0", 30)
                work(lc, 5)
                link.mend()
                version = work(lc, 1)
                eventually(lambda: f"\n{version:6} " in program.out, 30, "the newest event")
                program.interrupt()
        kept = json.loads((tmp_path / "subscriber" / "default.job1.json").read_text())
        journal = lc.journal()
        head = journal.head("default/lifelonglearningjob/job1")
        journal.close()
    assert (kept["version"], kept["hash"]) == tuple(head)


def work(lc: ControllerProcess, count: int) -> int:
    """Have the job live through so many more events; returns the newest version."""
    head = "state/{node}/heads/default/job1"
    before = eventually(lambda: lc.latest(head))["version"]
    for number in range(count):
        lc.tap.publish(lc.topic("worker/{node}/w1/info"), {"id": f"{before}-{number}", **RESULT})
    return eventually(lambda: (version := lc.latest(head)["version"]) >= before + count and version)
