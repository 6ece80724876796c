from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gm import job_manifest, template
from support.mosquitto import Mosquitto
from support.tap import Tap
from support.waiting import eventually

from lc_events.application.journal import open_journal
from lc_events.gm.client import apply_resource, delete_resource
from lc_events.gm.events import GM_EVENTS
from lc_events.gm.job import GmJob
from lc_events.gm.ledger import fold_stream
from lc_events.gm.views import job_view
from lc_events.mqtt.oneshot import retained
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics

STREAM = "default/lifelonglearningjob/job1"
PROGRAM = """
import json, os, pathlib
output = pathlib.Path(os.environ["OUTPUT_URL"])
output.mkdir(parents=True, exist_ok=True)
model = output / "index.pkl"
model.write_text(os.environ.get("TRAIN_DATASET_URL") or os.environ["MODEL_URLS"])
pathlib.Path(os.environ["LC_RESULT_FILE"]).write_text(
    json.dumps({"results": [{"format": "pkl", "url": str(model), "metrics": {"acc": [0.5]}}]})
)
"""
SERVER = "import time\nwhile True: time.sleep(1)"
DATASET = {
    "apiVersion": "sedna.io/v1alpha1",
    "kind": "Dataset",
    "metadata": {"name": "ds"},
    "spec": {"url": "/data/ds.txt", "format": "txt", "nodeName": "edge1"},
}


class Site:
    """A global manager, and two nodes with LC and agent each, that share a file system; each a process."""

    def __init__(self, broker: Mosquitto, root: str, folder: Path) -> None:
        self.topics = Topics(root)
        self.mqtt = MqttSettings.from_url(broker.url, client_id="operator")
        self.folder = folder
        self.root = folder / "root"
        (self.root / "data").mkdir(parents=True)
        self._url = broker.url
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, command: str, node: str = "") -> None:
        name = f"{command}-{node}"
        prefix = {"gm": "GM_", "run": "LC_", "worker": "WORKER_"}[command]
        settings = {"MQTT_URL": self._url, "STATE_DIR": str(self.folder / name), "TOPIC_ROOT": self.topics.root}
        settings |= {"NODE": node, "ROOT": str(self.root)} if node else {}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "GM_", "WORKER_"))}
        environ = {**clean, **{f"{prefix}{key}": value for key, value in settings.items()}}
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "lc_events", command], env=environ, stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait(10)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(30)

    def append(self, first: int) -> None:
        with (self.root / "data" / "ds.txt").open("a") as file:
            file.writelines(f"imgs/{number:03}.jpg 0\n" for number in range(first, first + 10))

    def show(self) -> Any:
        journal = open_journal(self.folder / "gm-" / "events.db", GM_EVENTS)
        try:
            job = fold_stream(STREAM, journal.stream(STREAM))
        finally:
            journal.close()
        assert isinstance(job, GmJob)
        return json.loads(json.dumps(job_view(job)))

    def after_round(self, round_: int) -> Any:
        def done() -> Any:
            shown = self.show()
            stands = (shown["round"], shown["stage"], shown["type"]) == (round_, "Train", "Waiting")
            return shown if stands and not shown["unconfirmed"] else None

        return eventually(done, 60, f"round {round_}")


@pytest.fixture
def site(shared_mosquitto: Mosquitto, topic_root: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(shared_mosquitto, topic_root, tmp_path)
    site.start("gm")
    for node in ("edge1", "edge2"):
        site.start("run", node)
        site.start("worker", node)
    yield site
    site.stop()


def test_a_job_learns_on_one_node_trains_on_another_survives_both_ends_and_is_taken_back(
    site, shared_mosquitto
) -> None:
    program = {"command": ["python"], "args": ["-c", PROGRAM]}
    job = job_manifest(
        trainSpec={**job_manifest()["spec"]["trainSpec"], **template("edge2", **program)},
        evalSpec=template(**program),
        deploySpec=template(command=["python"], args=["-c", SERVER]),
    )
    apply_resource(site.mqtt, site.topics, job)
    apply_resource(site.mqtt, site.topics, DATASET)
    site.append(0)
    shown = site.after_round(1)
    assert [f"{c['stage']}/{c['type']}" for c in shown["conditions"]] == [
        *("Train/Waiting", "Train/Ready", "Train/Starting", "Train/Running", "Train/Completed"),
        *("Eval/Waiting", "Eval/Ready", "Eval/Starting", "Eval/Running", "Eval/Completed"),
        *("Deploy/Waiting", "Deploy/Ready", "Deploy/Starting", "Deploy/Running", "Deploy/Completed"),
        "Train/Waiting",
    ]
    assert shown["nodes"]["edge2"]["operation"] == "delete"
    deployed = site.root / "output/job1/deploy/index.pkl"
    assert deployed.read_text() == str(site.root / "output/job1/train/1/index.pkl")

    site.kill("gm-")
    site.append(10)
    site.start("gm")
    shown = site.after_round(2)
    assert len(shown["conditions"]) == 31
    assert shown["counts"]["duplicates"] <= 1
    (serving,) = shown["work"]
    assert (serving["stage"], serving["answered"]) == ("Deploy", True)

    site.kill("run-edge1")
    shutil.rmtree(site.folder / "run-edge1")
    state = site.topics.state_job("edge1", "default", "job1")
    with Tap(shared_mosquitto.port, state) as tap:
        site.start("run", "edge1")
        # adopted, and placed at the dataset's present end: what comes from now on is new
        tap.wait_for(lambda m: not m.retain and m.json["round"] == 2 and m.json["version"] >= 4, 30)
        site.append(20)
        shown = site.after_round(3)
    assert "the broker has seen version" in (site.folder / "run-edge1.log").read_text()
    assert (site.root / "output/job1/data/train/3/data.txt").read_text().startswith("imgs/020.jpg 0")

    delete_resource(site.mqtt, site.topics, "job", "default", "job1")
    delete_resource(site.mqtt, site.topics, "dataset", "default", "ds")
    eventually(lambda: not site.show()["unconfirmed"], 30, "both nodes have forgotten the job, the server has ended")
    marker = site.topics.answer("gm", "end")
    assert retained(site.mqtt, f"{site.topics.root}/state/+/jobs/#", marker=marker) == {}
