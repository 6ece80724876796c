"""A whole site: edge and cloud brokers with a bridge between them, LC, global manager and worker agent as processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from lc_events.gm.client import apply_resource
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics
from support.bridged import Bridged
from support.gm import job_manifest, template
from support.gm_store import stored_job
from support.local_controller import ControllerProcess

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


def started(command: str, log: Path, **settings: object) -> subprocess.Popen[bytes]:
    """`lc-events run`, `gm` or `worker` as a process; `settings` are environment variables without their prefix."""
    prefix = {"gm": "GM_", "run": "LC_", "worker": "WORKER_"}[command]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "GM_", "WORKER_"))}
    environment |= {f"{prefix}{name.upper()}": str(value) for name, value in settings.items()}
    with log.open("ab") as output:
        arguments = [sys.executable, "-m", "lc_events", command]
        return subprocess.Popen(arguments, env=environment, stdout=output, stderr=output)


class Site:
    """`edge1` with its broker, LC and agent; a cloud with its broker and GM."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.brokers = Bridged(folder)
        self.clock = folder / "clock"
        self.set_clock(timedelta())
        self.lc = ControllerProcess(folder, port=self.brokers.edge.port, topic_root="sedna", test_clock=self.clock)
        self._ports = {"gm": self.brokers.cloud.port, "worker": self.brokers.edge.port}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.brokers)
            (self.lc.root / "data").mkdir(parents=True)
            stack.enter_context(self.lc)
            stack.callback(self._stop)
            self.start("gm")
            self.start("worker")
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def start(self, command: str) -> None:
        """Start `gm` or `worker`."""
        settings = {"mqtt_url": f"mqtt://127.0.0.1:{self._ports[command]}", "state_dir": self.folder / command}
        settings |= {"node": "edge1", "root": self.lc.root} if command == "worker" else {}
        self._processes[command] = started(command, self.folder / f"{command}.log", **settings)

    def kill(self, command: str) -> None:
        """End `gm` or `worker` with SIGKILL."""
        process = self._processes.pop(command)
        process.kill()
        process.wait(10)

    def apply(self, *resources: dict[str, Any]) -> None:
        """Give resources to GM."""
        settings = MqttSettings.from_url(self.brokers.cloud.url, client_id="operator")
        for resource_ in resources:
            apply_resource(settings, Topics("sedna"), resource_, timeout=30)

    def job_of_gm(self, name: str) -> Any:
        """A job as GM's store has it."""
        return stored_job(self.folder / "gm", name)

    def set_clock(self, offset: timedelta) -> None:
        """Put the LC's clock forward or back."""
        new = self.clock.with_suffix(".new")
        new.write_text(str(offset.total_seconds()))
        new.replace(self.clock)

    def set_clock_to(self, moment: datetime) -> None:
        """Set the LC's clock."""
        self.set_clock(moment - datetime.now(UTC))

    def _stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(30)


def learning_job(name: str, *, train_node: str | None = None) -> dict[str, Any]:
    """A job whose programs train and evaluate at once, and serve until they are told to stop."""
    program = {"command": ["python"], "args": ["-c", PROGRAM]}
    manifest = job_manifest(metadata={"name": name}, outputDir=f"/output/{name}")
    train = {**manifest["spec"]["trainSpec"], **template(train_node, **program)}
    manifest["spec"] |= {"trainSpec": train, "evalSpec": template(**program)}
    manifest["spec"] |= {"deploySpec": template(command=["python"], args=["-c", SERVER])}
    return manifest
