from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from support.waiting import eventually

from lc_events.errors import ConflictError, UsageError
from lc_events.messages.worker import read_worker
from lc_events.mqtt.settings import MqttSettings
from lc_events.workers.agent import WorkerAgent
from lc_events.workers.settings import AgentSettings

SUCCEEDS = """
    import os
    from lc_events.workers import report
    open("runs.txt", "a")
    with open(os.environ["ORIGINAL_DATASET_URL"], "a") as file:
        file.write("ran\\n")
    report([os.environ["OUTPUT_URL"] + "/index.pkl"], metrics={"accuracy": [0.5]})
"""
HANGS = "import time; print('up', flush=True); time.sleep(60)"
ENV = {"OUTPUT_URL": "/out/train/1", "ORIGINAL_DATASET_URL": "/ran.txt"}


def runs(node) -> int:
    return (node.folder / "root/ran.txt").read_text().count("ran")


def test_a_program_is_run_and_reported_as_sednas_workers_report(node):
    order_id = node.order("w1", SUCCEEDS, env=ENV)
    node.confirms("w1", "running")
    completed = node.confirms("w1", "completed")
    message = read_worker(completed.payload, worker="w1")
    assert message.results == [{"format": "pkl", "url": "/out/train/1/index.pkl", "metrics": {"accuracy": [0.5]}}]
    assert (message.owner_kind, message.owner_name, message.kind) == ("lifelonglearningjob", "job1", "train")
    assert message.owner_info == {"order": order_id, "round": 1}
    assert completed.topic == f"{node.root}/worker/{node.name}/w1/info"


def test_a_report_is_repeated_until_it_is_confirmed_and_no_longer(node):
    node.order("w1", SUCCEEDS, env=ENV)
    first = node.hears("w1", "running")
    again = node.hears("w1", "running", after=first.order)
    assert again.payload == first.payload
    assert node.said("w1") == ["running", "running"]
    node.done(again)
    completed = node.hears("w1", "completed")
    node.done(completed)
    node.order("w2", "raise SystemExit(1)")
    node.confirms("w2", "running")
    failed = node.hears("w2", "failed")
    node.hears("w2", "failed", after=failed.order)
    assert node.said("w1") == ["running", "running", "completed"]


def test_a_refused_report_is_given_up_with_a_line_in_the_log(node):
    node.order("w1", SUCCEEDS, env=ENV)
    node.done(node.hears("w1", "running"), error="unknown_job")
    node.confirms("w1", "completed")
    assert "refused report" in node.log
    assert "unknown_job" in node.log


def test_a_confirmation_of_somebody_else_changes_nothing(node):
    node.order("w1", "raise SystemExit(1)")
    running = node.hears("w1", "running")
    for payload in ({"id": "another"}, {"id": None}, "{", [1], {}):
        node.publish(f"worker/{node.name}/w1/done", payload)
    node.hears("w1", "running", after=running.order)
    node.confirms("w1", "running")
    node.confirms("w1", "failed")


def test_a_failure_brings_the_last_lines(node):
    node.order("w1", "print('no data'); raise SystemExit(4)")
    node.confirms("w1", "running")
    info = node.confirms("w1", "failed").json["ownerInfo"]
    assert (info["error"], info["output"]) == ("the program exited with 4", "no data")
    assert f"failed: the program exited with 4; its output is in {info['output_file']}" in node.log


def test_an_executable_that_is_not_allowed_is_reported_and_not_started(node):
    node.order("w1", command=["sh"], args=["-c", f"touch {node.folder}/touched"])
    report = node.confirms("w1", "failed").json
    assert "'sh' is not in WORKER_ALLOW (python, python3)" in report["ownerInfo"]["error"]
    assert report["results"] == []
    assert not (node.folder / "touched").exists()


def test_a_repeated_order_runs_once(node):
    for _ in range(3):
        node.order("w1", SUCCEEDS, env=ENV, id="same")
    node.confirms("w1", "running")
    node.confirms("w1", "completed")
    node.order("w1", SUCCEEDS, env=ENV, id="same")
    node.order("w1", SUCCEEDS, env=ENV, id="another")
    eventually(lambda: runs(node) == 2, what="the other order ran")
    node.hears("w1", "running", after=node.hears("w1", "completed").order)
    assert runs(node) == 2


def test_a_hanging_program_is_cancelled(node):
    order_id = node.order("w1", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {HANGS}")
    node.confirms("w1", "running")
    node.publish(f"work/{node.name}/w1", {"id": order_id, "cancel": True})
    info = node.confirms("w1", "failed").json["ownerInfo"]
    assert (info["error"], info["order"]) == ("cancelled", order_id)
    assert node.processes() == []


def test_an_inference_program_stays_until_the_next_round_replaces_it(node):
    node.order("infer-1", HANGS, stage="Deploy", round=1)
    assert node.confirms("infer-1", "running").json["kind"] == "deploy"
    [old] = node.processes()
    node.order("infer-2", HANGS, stage="Deploy", round=2)
    node.confirms("infer-2", "running")
    eventually(lambda: len(node.processes()) == 1 and old not in node.processes(), what="only the newer one runs")
    assert node.said("infer-1") == ["running"]


def test_bad_orders_are_reported_where_it_is_known_whose_they_are(node):
    topic = f"work/{node.name}/w1"
    for payload in ("", "{", "[]", {"id": "x"}, {"id": "x", "cancel": "yes"}, {"job": "job1", "stage": "Train"}):
        node.publish(topic, payload)
    node.publish(f"work/{node.name}/a b", {"id": "x", "cancel": True})
    node.order("w1", id="o-bad", args="not a list")
    assert "the work order is refused: args" in node.confirms("w1", "failed").json["ownerInfo"]["error"]
    node.order("w2", "raise SystemExit(1)")
    node.confirms("w2", "running")
    assert node.log.count("refused a message") == 7


@pytest.mark.parametrize("worker", ["..", ".", "-rf", "w" * 64])
def test_a_hostile_worker_name_is_only_a_name(node, worker: str):
    node.order(worker, "raise SystemExit(1)", id="../../x")
    node.confirms(worker, "running")
    node.confirms(worker, "failed")
    assert {path.name for path in node.folder.iterdir()} == {"agent.log", "root", "state"}
    assert {path.name for path in (node.folder / "state").iterdir()} == {"lock", "runs"}


def test_an_agent_killed_in_the_middle_runs_the_program_again_under_the_same_ids(node):
    order_id = node.order("w1", f"{SUCCEEDS}\n    {HANGS}", env=ENV)
    running = node.confirms("w1", "running")
    eventually((node.folder / "root/ran.txt").exists, what="the program has run")
    node.kill()
    assert len(node.processes()) == 1
    node.start()
    eventually(lambda: runs(node) == 2, what="it runs again")
    assert len(node.processes()) == 1
    node.publish(f"work/{node.name}/w1", {"id": order_id, "cancel": True})
    failed = node.confirms("w1", "failed")
    assert failed.json["id"] == running.json["id"].replace("running", "failed")
    assert set(node.said("w1")) == {"running", "failed"}


def test_a_result_survives_the_agent_and_is_said_until_it_is_confirmed(node):
    node.order("w1", SUCCEEDS, env=ENV)
    node.confirms("w1", "running")
    completed = node.hears("w1", "completed")
    node.kill()
    node.start()
    again = node.hears("w1", "completed", after=completed.order)
    assert again.payload == completed.payload
    node.done(again)
    eventually(lambda: list(node.folder.glob("state/runs/*/confirmed.json")), what="the confirmation is on disk")
    assert runs(node) == 1


@pytest.mark.parametrize("moment", ["order.json", "process.json", "outcome.json", "confirmed.json"])
def test_an_agent_killed_at_any_step_loses_nothing(node, moment: str):
    node.order("w1", SUCCEEDS, env=ENV)
    if moment == "confirmed.json":
        node.done(node.hears("w1", "running"))
    eventually(lambda: list(node.folder.glob(f"state/runs/w1.*/{moment}")), what=f"{moment} is written")
    node.kill()
    node.start()
    node.confirms("w1", "running")
    completed = node.confirms("w1", "completed")
    assert completed.json["results"][0]["url"] == "/out/train/1/index.pkl"
    said = node.said("w1")
    assert said == sorted(said, reverse=True)


def test_orders_that_come_while_the_agent_is_away_are_run(node):
    node.order("w1", SUCCEEDS, env=ENV)
    node.confirms("w1", "running")
    node.confirms("w1", "completed")
    assert node.terminate() == 0
    node.order("w2", SUCCEEDS, env=ENV)
    node.start()
    node.confirms("w2", "running")
    node.confirms("w2", "completed")
    assert runs(node) == 2


def test_an_agent_that_is_told_to_end_leaves_no_program_and_runs_it_again(node):
    node.order("w1", f"{SUCCEEDS}\n    {HANGS}", env=ENV)
    node.confirms("w1", "running")
    eventually((node.folder / "root/ran.txt").exists, what="the program has run")
    assert node.terminate() == 0
    assert node.processes() == []
    node.start()
    eventually(lambda: runs(node) == 2, what="it runs again")
    assert set(node.said("w1")) == {"running"}


def test_a_broker_that_was_away_hears_the_result(lonely_node):
    node = lonely_node
    node.order("w1", f"{SUCCEEDS}", env=ENV)
    node.confirms("w1", "running")
    node.hears("w1", "completed")
    node.broker.kill()
    heard = len(node.tap.messages)
    node.broker.start()
    again = node.hears("w1", "completed", after=heard - 1)
    node.done(again)
    eventually(
        lambda: [
            path
            for path in node.folder.glob("state/runs/*/confirmed.json")
            if "completed" in json.loads(path.read_text())
        ],
        what="the confirmation is on disk",
    )


def test_an_order_waits_until_the_disk_takes_it(node):
    name = f"w1.{hashlib.sha256(b'o-1').hexdigest()[:16]}"
    in_the_way = node.folder / "state/runs" / name
    eventually((node.folder / "state/runs").exists, what="the agent is there")
    in_the_way.write_text("a file where a folder has to be")
    node.order("w1", SUCCEEDS, env=ENV)
    eventually(lambda: "nothing is acknowledged until the disk takes it" in node.log, what="the agent says so")
    assert node.said("w1") == []
    in_the_way.unlink()
    node.confirms("w1", "running")
    node.confirms("w1", "completed")


def test_two_agents_do_not_share_a_folder(node):
    node.order("w1", "raise SystemExit(1)")
    node.confirms("w1", "running")
    settings = AgentSettings(node="edge1", state_dir=node.folder / "state")
    agent = WorkerAgent(settings, MqttSettings.from_url(node.broker.url, client_id="worker-edge1"))
    with pytest.raises(ConflictError, match="is in use by process"):
        agent.run()


def test_an_agent_without_a_client_id_has_no_session_and_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="client id"):
        WorkerAgent(AgentSettings(node="edge1", state_dir=tmp_path), MqttSettings())
