"""What a hostile client or worker may send: each is refused in words, or does no harm."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready, trained
from support.sedna import condition, output
from support.waiting import eventually


def refused(lc, code: str):
    return eventually(lambda: [error for error in lc.errors() if error["code"] == code])


def evaluated_with(gm: PlayedGm, second: int, url: str) -> None:
    """GM says that the evaluation put out this model, and lets it be deployed."""
    gm.move(
        condition("Eval", "Completed", f"2024-01-02T00:00:{second:02}Z", output(url)),
        condition("Deploy", "Waiting", f"2024-01-02T00:00:{second + 1:02}Z"),
    )


@pytest.mark.parametrize("is_running", [True, False])
def test_a_retained_message_is_refused_for_it_would_come_with_every_connection(lc, gm, is_running):
    gm.dataset()
    gm.job()
    eventually(lambda: lc.job()["generation"] == 1)
    header = {"resourceKind": "lifelonglearningjob", "resourceName": "job1", "operation": "delete"}
    topic = lc.topic("down/{node}/lifelonglearningjob/default/job1")
    if not is_running:
        lc.kill()
    lc.tap.publish(topic, {"header": header}, retain=True)
    if not is_running:
        lc.start()
    refused(lc, "retained")
    assert not lc.job()["deleted"]
    lc.tap.publish(topic, b"", retain=True)
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"])
    assert {error["code"] for error in lc.errors()} == {"retained"}  # kept for the session, and from the store


@pytest.mark.parametrize("bad", ["/output/job1/eval/1/folder", f"/output/job1/{'x' * 300}"])
def test_a_model_that_is_no_file_is_given_up_and_the_next_one_deployed(lc, gm, bad):
    lc.write("/data/ds.txt", "a\n" * 10)
    (lc.root / "output/job1/eval/1/folder").mkdir(parents=True)
    lc.write("/output/job1/eval/1/good.pkl", "good")
    gm.dataset()
    gm.job()
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    gm.move(*trained(1))
    evaluated_with(gm, 1, bad)
    eventually(lambda: any(m.json["content"].get("status") == "Failed" for m in gm.up))
    evaluated_with(gm, 3, "/output/job1/eval/1/good.pkl")
    eventually(lambda: lc.file("/output/job1/deploy/index.pkl").exists())
    assert lc.file("/output/job1/deploy/index.pkl").read_text() == "good"


def test_two_names_of_one_output_folder_are_one(lc, gm):
    (lc.root / "output/x").mkdir(parents=True)
    (lc.root / "output/y").symlink_to("x")
    gm.job("job1", output_dir="/output/x")
    gm.job("job2", output_dir="/output/y")
    assert "belongs to the live job" in refused(lc, "conflict")[0]["error"]


def test_a_link_below_the_output_folder_does_not_lead_writing_elsewhere(lc, gm):
    victim = lc.root / "victim"
    victim.mkdir(parents=True)
    (lc.root / "output/job1/data").mkdir(parents=True)
    (lc.root / "output/job1/data/train").symlink_to(victim)
    lc.write("/data/ds.txt", "a\n" * 10)
    gm.dataset()
    gm.job()
    eventually(lambda: "leads out of" in json.dumps([m.json for m in lc.tap.messages if "/events/" in m.topic]))
    assert list(victim.rglob("data.txt")) == []


def test_a_dataset_below_the_output_folder_is_refused(lc, gm):
    gm.dataset("ds", url="/output/job1/data/train/1/data.txt")
    gm.job()
    assert "lies below outputDir" in refused(lc, "conflict")[0]["error"]


def test_two_controllers_do_not_share_a_store_that_lies_elsewhere(shared_mosquitto, topic_root, tmp_path):
    store = tmp_path / "shared" / "events.db"
    with ControllerProcess(tmp_path / "one", port=shared_mosquitto.port, topic_root=topic_root, store=store) as lc:
        other = {"LC_STORE": str(store), "LC_STATE_DIR": str(tmp_path / "two"), "LC_NODE": "edge2"}
        second = subprocess.run(
            [sys.executable, "-m", "lc_events", "run"],
            env=other,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert second.returncode == 4
        assert f"is in use by process {lc.pid}" in second.stderr


@pytest.mark.parametrize("output_dir", ["/var", "/link", "/var/lib/lc", "/var/lib/lc/spool", "/etc/lc.d"])
def test_an_output_folder_that_opens_what_is_the_controllers_own_is_refused(
    shared_mosquitto, topic_root, tmp_path, output_dir
):
    root = tmp_path / "root"
    own = {"state_dir": root / "var/lib/lc", "store": root / "etc/lc.d/events.db"}
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, **own) as lc:
        (root / "link").symlink_to("var")
        gm = PlayedGm(lc)
        gm.job("job1", output_dir=output_dir)
        words = refused(lc, "conflict")[0]["error"]
        assert words.startswith(f"outputDir {output_dir} cannot be used: ")
        assert words.endswith("which is the controller's own")
        gm.job("job1", output_dir="/var/out")
        eventually((root / "var/out/train").is_dir)


@pytest.mark.parametrize("which", ["output", "place"])
def test_a_folder_that_becomes_a_link_later_opens_nothing(shared_mosquitto, topic_root, tmp_path, which):
    root, places = tmp_path / "root", "/srv/models"
    (root / "srv/models").mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/shadow").write_text("root:hash")
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, model_places=places) as lc:
        gm = PlayedGm(lc)
        gm.job()
        eventually(lambda: lc.file("/output/job1/eval").is_dir())
        exchanged = lc.file("/output/job1" if which == "output" else places)
        exchanged.rename(root / "old")
        exchanged.symlink_to(root / "etc")
        url = "/output/job1/shadow" if which == "output" else "/srv/models/shadow"
        evaluated_with(gm, 1, url)
        eventually(lambda: any(m.json["content"].get("status") == "Failed" for m in gm.up))
        assert f"{exchanged} is another folder than when the job was inserted" in lc.log
        assert [path.name for path in root.rglob("*") if path.name in ("index.pkl", "deploy")] == []
        lc.stop()
        lc.start()
        evaluated_with(gm, 3, url)
        eventually(lambda: lc.file("/output/job1/deploy/index.pkl").exists())
