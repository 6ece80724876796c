from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gm import dataset_manifest
from support.gm_store import stored_job
from support.mosquitto import Mosquitto
from support.tap import Tap, Tapped
from support.waiting import eventually

from lc_events.gm.client import apply_resource, delete_resource
from lc_events.gm.global_manager import GlobalManager
from lc_events.gm.outbox import Pauses
from lc_events.messages.json import JsonObject
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics

PROGRAM = """
import signal
from lc_events.gm.bootstrap import global_manager
from lc_events.logs import configure_logging
from lc_events.settings.programs import GmSettings

settings = GmSettings.load()
configure_logging(settings.log, settings.log_format)
manager = global_manager(settings)
signal.signal(signal.SIGTERM, lambda *_: manager.stop())
manager.run()
"""


class Cloud:
    """A global manager on a topic root of its own; the test plays operators, LCs and agents."""

    def __init__(self, broker: Mosquitto, root: str, folder: Path) -> None:
        self.broker = broker
        self.root = root
        self.folder = folder / "gm"
        self.topics = Topics(root)
        self.tap = Tap(broker.port, f"{root}/#")
        self.client_id = f"gm-{uuid.uuid4().hex[:8]}"
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._manager: GlobalManager | None = None

    @property
    def mqtt(self) -> MqttSettings:
        return MqttSettings.from_url(self.broker.url, client_id=self.client_id)

    @property
    def log(self) -> str:
        return (self.folder.parent / "gm.log").read_text()

    def start(self, **pauses: float) -> None:
        """Run the global manager in this process, with its own pauses between repeats."""
        manager = self._manager = GlobalManager(self.folder, self.mqtt, topics=self.topics, pauses=Pauses(**pauses))
        self._thread = threading.Thread(target=manager.run)
        self._thread.start()
        manager._client.wait_connected(10)

    def start_process(self) -> None:
        """Run it as a process of its own, to be killed."""
        environ = {
            **os.environ,
            "GM_MQTT_URL": self.broker.url,
            "GM_MQTT_CLIENT_ID": self.client_id,
            "GM_STATE_DIR": str(self.folder),
            "GM_TOPIC_ROOT": self.root,
        }
        with (self.folder.parent / "gm.log").open("ab") as log:
            self._process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environ, stdout=log, stderr=log)

    def kill(self) -> None:
        """End the process with SIGKILL, wherever it is."""
        process, self._process = self._process, None
        assert process
        process.kill()
        process.wait(10)

    def terminate(self) -> int:
        """End the process with SIGTERM; its exit code."""
        process, self._process = self._process, None
        assert process
        process.send_signal(signal.SIGTERM)
        return process.wait(20)

    def stop(self) -> None:
        """End what runs."""
        if self._process is not None:
            self.kill()
        if self._manager is not None and self._thread is not None:
            self._manager.stop()
            self._thread.join(20)
            assert not self._thread.is_alive()
        self._manager = self._thread = None

    def apply(self, resource: dict[str, Any]) -> JsonObject:
        return apply_resource(self.mqtt, self.topics, resource)

    def delete(self, kind: str = "job", name: str = "job1") -> JsonObject:
        return delete_resource(self.mqtt, self.topics, kind, "default", name)

    def show(self, name: str = "job1") -> Any:
        """What `show` says of a job, from the store beside the running program."""
        return stored_job(self.folder, name)

    def stands(self, stage: str, type_: str) -> Any:
        """What `show` says once the job stands there."""
        return eventually(
            lambda: (shown := self.show()) and (shown["stage"], shown["type"]) == (stage, type_) and shown
        )


class Node:
    """The LC and the agent of one node, played by hand."""

    def __init__(self, cloud: Cloud, name: str = "edge1") -> None:
        self.cloud = cloud
        self.name = name
        self._reports = 0

    def report(self, content: dict[str, Any], report_id: str | None = None, *, wait: bool = True) -> str:
        """Report on the job, and wait until that is confirmed."""
        self._reports += 1
        report_id = report_id or f"{self.name}/default/lifelonglearningjob/job1/{self._reports}-0123456789ab"
        self.send("LifelongLearningJob", "job1", content, report_id)
        if wait:
            self.confirmed(report_id)
        return report_id

    def send(self, kind: str, name: str, content: dict[str, Any], report_id: str) -> None:
        header = {"namespace": "default", "resourceKind": kind, "resourceName": name, "operation": "status"}
        topic = self.cloud.topics.up(self.name, kind.lower(), "default", name)
        self.cloud.tap.publish(topic, {"id": report_id, "header": header, "content": content})

    def confirmed(self, report_id: str, times: int = 1, timeout: float = 15.0) -> None:
        """Wait until an id was confirmed."""
        topic = self.cloud.topics.down_ack(self.name)
        self.cloud.tap.wait_for_count(times, lambda m: m.topic == topic and report_id in m.json["ids"], timeout)

    def told(self, condition: str, *, count: int = 1, name: str = "job1") -> Tapped:
        """The message that tells of the job standing at `Stage/Type`."""
        return self.cloud.tap.wait_for_count(count, self._tells(condition, name), 15)[-1]

    def _tells(self, condition: str, name: str) -> Callable[[Tapped], bool]:
        topic = self.cloud.topics.down(self.name, "lifelonglearningjob", "default", name)

        def tells(message: Tapped) -> bool:
            if message.topic != topic or message.json["header"]["operation"] != "insert":
                return False
            newest = message.json["content"]["status"]["conditions"][-1]
            return f"{newest['stage']}/{newest['type']}" == condition

        return tells

    def messages(self, kind: str = "lifelonglearningjob", name: str = "job1") -> list[Tapped]:
        """All that this node was told of a resource."""
        return self.cloud.tap.of(self.cloud.topics.down(self.name, kind, "default", name))

    def deleted(self, name: str = "job1", kind: str = "lifelonglearningjob", *, count: int = 1) -> Tapped:
        """The message that takes the resource back."""
        topic = self.cloud.topics.down(self.name, kind, "default", name)
        return self.cloud.tap.wait_for_count(
            count, lambda m: m.topic == topic and m.json["header"]["operation"] == "delete", 15
        )[-1]

    def shows(self, message: Tapped | None, name: str = "job1", *, kind: str = "jobs") -> None:
        """Publish the retained state that confirms a message; None for a deleted resource."""
        topic = f"{self.cloud.root}/state/{self.name}/{kind}/default/{name}"
        payload = b"" if message is None else json.dumps({"gm_message": message.json["id"]})
        self.cloud.tap.publish(topic, payload, retain=True)

    def born(self) -> None:
        """Say that the LC began a new session."""
        birth = {"state": "online", "session": uuid.uuid4().hex, "version": "0", "time": "2026-05-09T08:00:00Z"}
        self.cloud.tap.publish(self.cloud.topics.status(self.name), birth, retain=True)

    def orders(self) -> list[Tapped]:
        """All work orders and cancels for this node."""
        return [m for m in self.cloud.tap.messages if m.topic.startswith(f"{self.cloud.root}/work/{self.name}/")]

    def order(self, stage: str, *, count: int = 1) -> Tapped:
        """The work order of a stage."""
        prefix = f"{self.cloud.root}/work/{self.name}/"
        return self.cloud.tap.wait_for_count(
            count, lambda m: m.topic.startswith(prefix) and m.json.get("stage") == stage, 15
        )[-1]

    def cancelled(self, order: Tapped) -> Tapped:
        """The cancel of an order."""
        return self.cloud.tap.wait_for(
            lambda m: m.topic == order.topic and m.json == {"id": order.json["id"], "cancel": True}, 15
        )


@pytest.fixture
def cloud(shared_mosquitto: Mosquitto, topic_root: str, tmp_path: Path) -> Iterator[Cloud]:
    """A cloud whose global manager the test starts."""
    cloud = Cloud(shared_mosquitto, topic_root, tmp_path)
    with cloud.tap:
        yield cloud
        cloud.stop()


@pytest.fixture
def edge1(cloud: Cloud) -> Node:
    return Node(cloud)


@pytest.fixture
def edge2(cloud: Cloud) -> Node:
    return Node(cloud, "edge2")


@pytest.fixture
def dataset() -> dict[str, Any]:
    return dataset_manifest()
