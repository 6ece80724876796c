"""What was refused can be listed, shown, sent once more and thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.played_gm import train_ready
from support.sedna import JOB, condition, job_resource
from support.waiting import eventually

SECRET = "AKIAplantedSecret0"


@pytest.fixture
def quarantine(lc, shared_mosquitto):
    """`lc-events quarantine …` with the controller's settings."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "GM_"))}
    environment |= {"LC_STATE_DIR": str(lc.state_dir), "LC_MQTT_URL": shared_mosquitto.url}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lc_events", "quarantine", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)

    return run


def test_a_first_bad_insert_never_makes_a_name_unusable(lc, gm, quarantine):
    lc.write("/data/ds.txt", "a\nb\nc\nd\ne\n")
    gm.dataset()
    gm.expect({"numberOfSamples": 5})
    bad = job_resource(condition("Train", "Waiting"), train_prob=2.0, annotations={"sedna.io/credential": SECRET})
    gm.send(JOB, "job1", bad)
    error = eventually(lc.errors)[0]
    assert (error["code"], error["id"]) == ("invalid", "m-2")

    entries = json.loads(quarantine("list", "-o", "json").stdout)
    assert [(entry["id"], entry["code"]) for entry in entries] == [(error["quarantine"], "invalid")]
    assert error["quarantine"] in quarantine("list").stdout
    shown = quarantine("show", error["quarantine"])
    assert (shown.returncode, SECRET in shown.stdout) == (0, False)
    assert json.loads(shown.stdout)["payload"]["content"]["spec"]["dataset"]["trainProb"] == 2.0

    gm.job()
    gm.expect(train_ready(1))
    assert quarantine("drop", error["quarantine"]).returncode == 0
    assert json.loads(quarantine("list", "-o", "json").stdout) == []
    assert quarantine("show", error["quarantine"]).returncode == 3


def test_what_came_too_early_is_taken_when_it_is_sent_again(lc, gm, quarantine):
    gm.result(id="r-1", ownerName="job1")
    error = eventually(lc.errors)[0]
    assert error["code"] == "unknown_job"
    again = quarantine("retry", error["quarantine"])
    assert again.returncode == 0, again.stderr
    second = eventually(lambda: lc.errors()[1:])[0]
    assert (second["code"], second["id"]) == ("unknown_job", "r-1")
    assert [e["id"] for e in json.loads(quarantine("list", "-o", "json").stdout)] == [second["quarantine"]]

    gm.job()
    eventually(lc.job)
    assert quarantine("retry", second["quarantine"]).returncode == 0
    assert gm.next_up()["content"]["phase"] == "train"
    assert json.loads(quarantine("list", "-o", "json").stdout) == []


def test_without_a_broker_nothing_is_dropped(lc, gm, quarantine):
    gm.result(id="r-1", ownerName="job1")
    error = eventually(lc.errors)[0]
    refused = quarantine("retry", error["quarantine"], "--mqtt-url", "mqtt://127.0.0.1:9", "--timeout", "0.5")
    assert refused.returncode == 6
    assert len(json.loads(quarantine("list", "-o", "json").stdout)) == 1
