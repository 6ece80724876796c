from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gm import dataset_manifest
from support.gm_store import stored_job
from support.mosquitto import Mosquitto
from support.site import learning_job, started
from support.tap import Tap
from support.waiting import eventually

from lc_events.gm.client import apply_resource, delete_resource
from lc_events.mqtt.oneshot import retained
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics


class TwoNodes:
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
        settings = {"mqtt_url": self._url, "state_dir": self.folder / name, "topic_root": self.topics.root}
        settings |= {"node": node, "root": self.root} if node else {}
        self._processes[name] = started(command, self.folder / f"{name}.log", **settings)

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
        return stored_job(self.folder / "gm-", "job1")

    def after_round(self, round_: int) -> Any:
        def done() -> Any:
            shown = self.show()
            stands = (shown["round"], shown["stage"], shown["type"]) == (round_, "Train", "Waiting")
            return shown if stands and not shown["unconfirmed"] else None

        return eventually(done, 60, f"round {round_}")


@pytest.fixture
def site(shared_mosquitto: Mosquitto, topic_root: str, tmp_path: Path) -> Iterator[TwoNodes]:
    site = TwoNodes(shared_mosquitto, topic_root, tmp_path)
    site.start("gm")
    for node in ("edge1", "edge2"):
        site.start("run", node)
        site.start("worker", node)
    yield site
    site.stop()


def test_a_job_learns_on_one_node_trains_on_another_survives_both_ends_and_is_taken_back(
    site, shared_mosquitto
) -> None:
    apply_resource(site.mqtt, site.topics, learning_job("job1", train_node="edge2"))
    apply_resource(site.mqtt, site.topics, dataset_manifest())
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
