"""Which models are evaluated and deployed, and which are not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.played_gm import at, evaluated
from support.sedna import condition, model, output
from support.waiting import eventually

TEN = "".join(f"s{i}\n" for i in range(10))
DEPLOYED = "/output/job1/deploy/index.pkl"


def to_deploy(lc, gm, url: str | None) -> dict:
    """A job that comes to Deploy/Waiting with this evaluated model; returns its report."""
    data = {"output": {"models": []}} if url is None else output(url)
    gm.job("job1", condition("Eval", "Completed", at(1), data), condition("Deploy", "Waiting", at(2)))
    return gm.next_up()["content"]


def test_the_deployed_model_replaces_the_one_before_at_once(lc, gm):
    lc.write("/output/job1/eval/1/index.pkl", "a large model " * 100)
    assert to_deploy(lc, gm, "/output/job1/eval/1/index.pkl")["status"] == "Ready"
    inode = lc.file(DEPLOYED).stat().st_ino
    lc.write("/output/job1/eval/2/index.pkl", "small")
    gm.move(*evaluated(2))
    assert gm.next_up()["content"] == {
        "phase": "Deploy",
        "status": "Ready",
        "input": {"models": [{"format": "pkl", "url": "/output/job1/eval/2/index.pkl", "classes": None}]},
        "output": None,
    }
    assert lc.file(DEPLOYED).read_text() == "small"
    assert lc.file(DEPLOYED).stat().st_ino != inode
    assert lc.file(DEPLOYED).stat().st_mode & 0o777 == 0o644
    assert [path.name for path in lc.file(DEPLOYED).parent.iterdir()] == ["index.pkl"]


def test_without_a_model_deploy_is_completed(lc, gm):
    assert to_deploy(lc, gm, None) == {"phase": "Deploy", "status": "Completed", "output": None}
    assert lc.latest("state/{node}/models/default/job1") is None


def test_a_model_that_does_not_exist_is_reported_as_failed_once(lc, gm):
    report = to_deploy(lc, gm, "/output/job1/eval/1/index.pkl")
    assert (report["phase"], report["status"]) == ("Deploy", "Failed")
    assert report["input"]["models"][0]["url"] == "/output/job1/eval/1/index.pkl"
    state = eventually(lambda: (s := lc.job())["triggers"]["deploy"] == "completed" and s)
    assert state["model"] is None
    lc.write("/output/job1/eval/1/index.pkl", "too late for that condition")
    lc.tap.publish(lc.topic("tick/{node}"), {})
    gm.move(*evaluated(2))
    assert gm.next_up()["content"]["status"] == "Failed"
    lc.write("/output/job1/eval/3/index.pkl", "in time")
    gm.move(*evaluated(3))
    assert gm.next_up()["content"]["status"] == "Ready"


@pytest.mark.parametrize("url", ["/secret", "/output/job1/../../secret", "/output/job10/secret", "s3://bucket/secret"])
def test_a_model_outside_of_the_output_folder_is_never_published(lc, gm, url):
    for path in ("/secret", "/output/job10/secret"):
        lc.write(path, "not for devices")
    report = to_deploy(lc, gm, url)
    assert (report["phase"], report["status"]) == ("Deploy", "Failed")
    assert not lc.file(DEPLOYED).exists()


def test_a_link_below_the_output_folder_leads_nowhere(lc, gm):
    lc.write("/secret", "not for devices")
    lc.file("/output/job1/eval/1").mkdir(parents=True)
    lc.file("/output/job1/eval/1/index.pkl").symlink_to(lc.file("/secret"))
    assert to_deploy(lc, gm, "/output/job1/eval/1/index.pkl")["status"] == "Failed"
    assert not lc.file(DEPLOYED).exists()


def test_evaluation_waits_for_a_model_below_the_output_folder(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.expect({"numberOfSamples": 10})
    gm.job("job1", condition("Train", "Completed", at(1), output("/etc/shadow")), condition("Eval", "Waiting", at(2)))
    state = eventually(lambda: (s := lc.job()) and s["verdict"] and s["verdict"]["reason"] == "no_model" and s)
    assert "outputDir" in state["verdict"]["detail"]
    assert len(gm.up) == 1


def restart(lc, **settings):
    """With these settings until the next start."""
    lc.stop()
    lc.start(**settings)


def test_a_model_in_a_place_that_the_owner_named_is_deployed(lc, gm):
    restart(lc, model_places="/srv/models")
    lc.write("/srv/models/m.pkl", "released")
    assert to_deploy(lc, gm, "/srv/models/m.pkl") == {
        "phase": "Deploy",
        "status": "Ready",
        "input": {"models": [{"format": "pkl", "url": "/srv/models/m.pkl", "classes": None}]},
        "output": None,
    }
    assert lc.file(DEPLOYED).read_text() == "released"
    assert eventually(lambda: lc.latest("state/{node}/models/default/job1"))["url"] == DEPLOYED


@pytest.mark.parametrize("url", ["/secret", "/srv/models/../../secret", "/srv/models2/m.pkl", "/srv/models/link/m.pkl"])
def test_a_place_opens_nothing_beside_it(lc, gm, url):
    restart(lc, model_places="/srv/models")
    for path in ("/secret", "/srv/models2/m.pkl"):
        lc.write(path, "not for devices")
    lc.file("/srv/models").mkdir()
    lc.file("/srv/models/link").symlink_to(lc.file("/srv/models2"))
    assert to_deploy(lc, gm, url)["status"] == "Failed"
    assert not lc.file(DEPLOYED).exists()


@pytest.mark.parametrize("ticks", ["all", "decisive"])
def test_a_model_counts_once_its_place_was_named_and_the_history_needs_no_setting(lc, gm, ticks):
    stand = condition("Train", "Completed", at(1), output("/srv/models/m.pkl")), condition("Eval", "Waiting", at(2))
    gm.job("job1", *stand)
    state = eventually(lambda: (s := lc.job()) and s["verdict"] and s["verdict"]["reason"] == "no_model" and s)
    assert state["verdict"]["detail"].endswith("outputDir, nor in a place that LC_MODEL_PLACES names")
    restart(lc, model_places="/srv/models", ticks=ticks)
    assert gm.next_up()["content"]["input"]["models"] == [model("/srv/models/m.pkl")]
    restart(lc)
    verified = subprocess.run(
        [sys.executable, "-m", "lc_events", "verify", "--store", lc.state_dir / "events.db", "-o", "json"],
        capture_output=True,
        check=True,
    )
    assert json.loads(verified.stdout)["ok"]


@pytest.mark.parametrize("places", ["/", "models", "http://host/models", "/srv/models,s3://"])
def test_what_is_no_place_is_refused_at_the_start(lc, places):
    lc.stop()
    lc.start(wait=False, model_places=places)
    assert lc.wait_for_exit() == 2
    assert "LC_MODEL_PLACES is " in lc.log


def test_the_newest_condition_with_an_output_counts_whatever_came_after_it(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.expect({"numberOfSamples": 10})
    old, new = "/output/job1/train/1/old.pkl", "/output/job1/train/1/new.pkl"
    gm.job(
        "job1",
        condition("Train", "Completed", at(1), output(old)),
        condition("Train", "Completed", at(2), output(new)),
        condition("Train", "Completed", at(3)),
        condition("Train", "Completed", at(4), "no JSON"),
        condition("Train", "Completed", at(5), {"output": None}),
        condition("Eval", "Completed", at(6), output("/output/job1/eval/1/other.pkl")),
        condition("Eval", "Waiting", at(7)),
    )
    assert gm.next_up()["content"]["input"]["models"] == [model(new)]
