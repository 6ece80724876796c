from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.mosquitto import Mosquitto
from support.tap import Tap, Tapped

from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics

AGENT = """
import logging, pathlib, signal, sys
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics
from lc_events.workers.agent import WorkerAgent
from lc_events.workers.settings import AgentSettings

logging.basicConfig(level=logging.INFO, stream=sys.stdout)
url, root_topic, node, folder = sys.argv[1:]
folder = pathlib.Path(folder)
settings = AgentSettings(node=node, state_dir=folder / "state", root=folder / "root", grace_seconds=1.0)
agent = WorkerAgent(settings, MqttSettings.from_url(url, client_id=f"worker-{node}"), topics=Topics(root_topic))
signal.signal(signal.SIGTERM, lambda *_: agent.stop())
agent.run()
"""


class Node:
    """One node with its agent as a process of its own; the test plays global manager and local controller."""

    def __init__(self, broker: Mosquitto, topic_root: str, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.root = topic_root
        self.name = f"edge-{uuid.uuid4().hex[:8]}"
        self.tap = Tap(broker.port, f"{topic_root}/worker/{self.name}/+/info")
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        (folder / "root").mkdir(parents=True)

    def open_session(self) -> None:
        """Have the broker keep orders for the agent from now on, as it does for one that was there before."""
        settings = MqttSettings.from_url(self.broker.url, client_id=f"worker-{self.name}")
        subscriptions = Topics(self.root).agent_subscriptions(self.name)
        with MqttClient(settings, subscriptions=subscriptions, on_message=lambda _: None) as client:
            client.wait_connected(10)

    @property
    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def start(self) -> None:
        arguments = [self.broker.url, self.root, self.name, str(self.folder)]
        with (self.folder / "agent.log").open("ab") as log:
            self._process = subprocess.Popen([sys.executable, "-c", AGENT, *arguments], stdout=log, stderr=log)

    def kill(self) -> None:
        """End the agent with SIGKILL, wherever it is."""
        assert self._process
        self._process.kill()
        self._process.wait(10)

    def terminate(self) -> int:
        """End the agent with SIGTERM; its exit code."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(20)

    def order(self, worker: str, program: str = "", **changes: Any) -> str:
        """Order a Python program given as text; the order's id."""
        order_id = f"o-{next(self._numbers)}"
        known = {"id": order_id, "job": "job1", "stage": "Train", "round": 1, "command": ["python"]}
        order = {**known, "args": ["-c", textwrap.dedent(program)], **changes}
        self.tap.publish(f"{self.root}/work/{self.name}/{worker}", order)
        return str(order["id"])

    def publish(self, topic: str, payload: Any) -> None:
        self.tap.publish(f"{self.root}/{topic}", payload)

    def done(self, report: Tapped, error: str | None = None) -> None:
        """Confirm a report as the local controller does."""
        self.publish(f"worker/{self.name}/{report.json['name']}/done", {"id": report.json["id"], "error": error})

    def hears(self, worker: str, status: str, *, after: int = -1) -> Tapped:
        """The first report of a worker with that status, later than message `after`."""
        return self.tap.wait_for(
            lambda message: (
                message.order > after and (message.json["name"], message.json["status"]) == (worker, status)
            ),
            timeout=20,
        )

    def confirms(self, worker: str, status: str) -> Tapped:
        report = self.hears(worker, status)
        self.done(report)
        return report

    def said(self, worker: str) -> list[str]:
        """All statuses of a worker so far, repeats included."""
        return [message.json["status"] for message in self.tap.messages if message.json["name"] == worker]

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            try:
                self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self.tap.stop()

    def processes(self) -> list[int]:
        """Living processes that carry the mark of a run of this node."""
        mark = f"LC_RUN_FOLDER={self.folder / 'state' / 'runs'}".encode()
        found = []
        for entry in os.listdir("/proc"):  # noqa: PTH208 - names, not paths
            try:
                if entry.isdecimal() and mark in Path(f"/proc/{entry}/environ").read_bytes():
                    found.append(int(entry))
            except OSError:
                continue
        return found


@pytest.fixture
def node(shared_mosquitto: Mosquitto, topic_root: str, tmp_path: Path) -> Iterator[Node]:
    """A node with a running agent on the shared broker."""
    node = Node(shared_mosquitto, topic_root, tmp_path)
    node.tap.start()
    node.open_session()
    node.start()
    yield node
    node.close()
    assert node.processes() == []


@pytest.fixture
def lonely_node(mosquitto: Mosquitto, topic_root: str, tmp_path: Path) -> Iterator[Node]:
    """A node on a broker of its own, which the test may end and start again."""
    node = Node(mosquitto, topic_root, tmp_path / "node")
    node.tap.start()
    node.open_session()
    node.start()
    yield node
    node.close()
    assert node.processes() == []
