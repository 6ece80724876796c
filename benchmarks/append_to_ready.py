"""From appending records to the Train/Ready report, with ticks and polling out of the way (30 s).

python benchmarks/append_to_ready.py [ROUNDS]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.local_controller import ControllerProcess
from support.mosquitto import Mosquitto
from support.played_gm import PlayedGm, at
from support.sedna import condition
from support.waiting import eventually

RECORDS = 10


class Stopwatch:
    """Notes when a Train/Ready report reaches a subscriber."""

    def __init__(self, port: int, topic: str) -> None:
        self._heard = threading.Event()
        self._when = 0.0
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_message = self._on_message
        self._client.connect("127.0.0.1", port)
        self._client.subscribe(topic, qos=1)
        self._client.loop_start()

    def _on_message(self, _client, _data, message) -> None:
        if b'"Train","status":"Ready"' in message.payload:
            self._when = time.perf_counter()
            self._heard.set()

    def wait(self) -> float:
        if not self._heard.wait(60):
            raise TimeoutError("no Train/Ready within 60 s")
        self._heard.clear()
        return self._when


def measure(rounds: int) -> list[float]:
    found = []
    with (
        tempfile.TemporaryDirectory() as name,
        Mosquitto(Path(name) / "mosquitto") as broker,
        ControllerProcess(
            Path(name), port=broker.port, topic_root="sedna", tick_seconds=30, dataset_seconds=30, log="warning"
        ) as lc,
    ):
        gm = PlayedGm(lc)
        lc.write("/data/ds.txt", "")
        gm.dataset()
        gm.job()
        eventually(lambda: (s := lc.job()) and s["type"] == "Waiting")
        eventually(lambda: lc.latest("state/{node}/datasets/default/ds"))
        stopwatch = Stopwatch(broker.port, lc.topic("up/{node}/lifelonglearningjob/default/job1"))
        for round_ in range(1, rounds + 1):
            descriptor = os.open(lc.file("/data/ds.txt"), os.O_WRONLY | os.O_APPEND)
            records = "".join(f"image-{round_}-{i}.png {i % 2}\n" for i in range(RECORDS)).encode()
            began = time.perf_counter()
            os.write(descriptor, records)
            os.close(descriptor)
            found.append(stopwatch.wait() - began)
            gm.move(condition("Train", "Failed", at(round_)), condition("Train", "Waiting", at(round_)))
            eventually(lambda: lc.job()["gm_message"] == gm.last_id)
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    found = sorted(1000 * seconds for seconds in measure(rounds))
    tenths = statistics.quantiles(found, n=10, method="inclusive")
    print(f"append → Train/Ready, {rounds} rounds of {RECORDS} records, ticks and polling every 30 s")
    print(f"{'':12}{'p50':>10}{'p90':>10}{'max':>10}")
    print(f"{'lc-events':12}{tenths[4]:>7.0f} ms{tenths[8]:>7.0f} ms{found[-1]:>7.0f} ms")
    print(f"{'Sedna':12}{'20-60 s':>10}  (measured on its LC, Go, main branch)")


if __name__ == "__main__":
    main()
