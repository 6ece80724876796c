from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from support.local_controller import ControllerProcess
from support.mosquitto import Mosquitto, find_mosquitto
from support.played_gm import PlayedGm
from support.sedna import JOB
from support.tap import Tap
from support.waiting import eventually

from lc_events.mqtt.internal import InternalBroker


class Place(NamedTuple):
    """A running controller with a job, and how to reach its broker in either version of MQTT."""

    lc: ControllerProcess
    gm: PlayedGm
    login: str
    ports: dict[str, int]

    def url(self, protocol: str, port: int | None = None) -> str:
        return f"mqtt://{self.login}127.0.0.1:{port or self.ports[protocol]}"

    def work(self, count: int) -> int:
        """Have the job live through so many more events; returns the version that the head then names."""
        before = self.head()["version"]
        message = {"name": "w1", "ownerName": "job1", "ownerKind": JOB, "kind": "train", "status": "running"}
        topic = self.lc.topic("worker/{node}/w1/info")
        self.lc.tap.publish_all(
            (topic, {"id": f"{before}-{number}", **message, "results": []}) for number in range(count)
        )
        return eventually(lambda: (v := self.head()["version"]) >= before + count and v)

    def head(self):
        return self.lc.latest("state/{node}/heads/default/job1") or {"version": 0}


@pytest.fixture(scope="module", params=["mosquitto", "internal"])
def place(request, tmp_path_factory) -> Iterator[Place]:
    """One for all tests of a file, on each of the two brokers."""
    folder = tmp_path_factory.mktemp(request.param)
    root = f"t{uuid.uuid4().hex[:12]}"
    if request.param == "mosquitto":
        if find_mosquitto() is None:
            pytest.skip("mosquitto is not installed")
        with Mosquitto(folder / "broker") as broker:
            lc = ControllerProcess(folder, port=broker.port, topic_root=root)
            yield from _place(lc, "", {"5": broker.port, "3.1.1": broker.port})
    else:
        pytest.importorskip("iotcore")
        with InternalBroker(folder / "broker", port_v4=0, port_v5=0) as inner:
            settings = inner.settings()
            login = f"{settings.username}:{settings.password}@"
            url = f"mqtt://{login}127.0.0.1:{settings.port}"
            lc = ControllerProcess(folder, port=settings.port, topic_root=root, mqtt_url=url)
            lc.tap = Tap(settings.port, f"{root}/#", username=settings.username, password=settings.password)
            yield from _place(lc, login, {"5": inner.port_v5, "3.1.1": inner.port_v4})


def _place(lc: ControllerProcess, login: str, ports: dict[str, int]) -> Iterator[Place]:
    with lc:
        place = Place(lc, PlayedGm(lc), login, ports)
        place.gm.dataset()
        place.gm.job()
        eventually(lc.job)
        yield place
