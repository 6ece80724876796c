"""Worker results as fast as they come, and paced: each on disk, each passed on.

    python benchmarks/worker_results.py [--results 5000] [--jobs 50] [--pace 500] [--runs 3]

`bare` is the floor of the same run: a paho client that receives each result and publishes one reply, nothing stored;
its paced latencies say how late the machine and this program themselves are.
Broker, load and controller share the machine. A result counts when its report has come up; latencies are from the
sending of a result to that moment, without those of the first second.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

from raw_mqtt import RawClient, publish_packet  # noqa: E402
from support.mosquitto import Mosquitto  # noqa: E402

BARE = """
import sys, paho.mqtt.client as paho, socket
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.properties import Properties
from paho.mqtt.packettypes import PacketTypes
client = paho.Client(CallbackAPIVersion.VERSION2, "bare", protocol=MQTTProtocolVersion.MQTTv5)
client.max_inflight_messages_set(100)
client.on_socket_open = lambda c, d, s: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
client.on_connect = lambda c, *_: c.subscribe("sedna/worker/edge1/+/info", 1)
client.on_subscribe = lambda *_: print("ready", flush=True)
client.on_message = lambda c, d, m: c.publish("sedna/up/edge1/bare", m.payload, 1)
properties = Properties(PacketTypes.CONNECT)
properties.ReceiveMaximum = 500
client.connect("127.0.0.1", int(sys.argv[1]), clean_start=True, properties=properties)
client.loop_forever()
"""


class Reports:
    """What came up, by the number of the result in it; `confirm` says to the controller that it is on GM's disk."""

    def __init__(self, port: int) -> None:
        self.came: dict[int, float] = {}
        self._ids: list[str] = []
        self._awaited = range(0)
        self._last = 10**9
        self._changed = threading.Condition()
        self._client = RawClient(port, "listener", self._note)
        self._client.subscribe("sedna/up/#")

    def begin(self, awaited: range) -> None:
        self.came.clear()
        self._awaited = awaited

    def wait(self, seconds: float = 120) -> None:
        count = len(self._awaited)
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.came) == count, seconds), f"{len(self.came)} of {count}"

    def confirm(self) -> None:
        ids, self._ids = self._ids, []
        chunks = [ids[at : at + 500] for at in range(0, len(ids), 500)]
        said = [("sedna/down/edge1/ack", json.dumps({"ids": chunk}).encode()) for chunk in chunks]
        self._last -= 1
        self.begin(range(self._last, self._last + 1))
        self._client.send(packets([*said, result(self._last, 1)]))
        self.wait()  # messages are taken in their order

    def _note(self, _topic: bytes, payload: bytes, now: float) -> None:
        at = payload.find(b"number-")
        if at >= 0:
            number = int(payload[at + 7 : payload.index(b'"', at)])
            if number in self._awaited and number not in self.came:
                self.came[number] = now
                self._ids.append(payload[7 : payload.index(b'"', 7)].decode())
                if len(self.came) == len(self._awaited):
                    with self._changed:
                        self._changed.notify()


def result(number: int, jobs: int) -> tuple[str, bytes]:
    job = number % jobs
    message = {
        "id": f"r-{number}",
        "name": f"w{job}",
        "namespace": "default",
        "ownerName": f"job{job}",
        "ownerKind": "lifelonglearningjob",
        "kind": "train",
        "status": "running",
        "results": [{"format": "pkl", "url": f"/o/{number}/index.pkl", "note": f"number-{number}"}],
    }
    return f"sedna/worker/edge1/w{job}/info", json.dumps(message).encode()


def insert(job: int) -> tuple[str, bytes]:
    template = {"template": {"metadata": {}, "spec": {"containers": []}}}
    content = {
        "kind": "LifelongLearningJob",
        "apiVersion": "sedna.io/v1alpha1",
        "metadata": {"name": f"job{job}", "namespace": "default"},
        "spec": {
            "dataset": {"name": "ds", "trainProb": 0.8},
            "trainSpec": template,
            "evalSpec": template,
            "deploySpec": template,
            "outputDir": f"/output/job{job}",
        },
        "status": {"conditions": [{"type": "Running", "stage": "Train", "status": "True"}]},
    }
    header = {"namespace": "default", "resourceKind": "lifelonglearningjob", "resourceName": f"job{job}"}
    payload = {"id": f"g-{job}", "header": {**header, "operation": "insert"}, "content": content}
    return f"sedna/down/edge1/lifelonglearningjob/default/job{job}", json.dumps(payload).encode()


def packets(messages: list[tuple[str, bytes]]) -> list[bytes]:
    return [publish_packet(number % 65000 + 1, *message) for number, message in enumerate(messages)]


def rate(port: int, reports: Reports, results: range, jobs: int) -> float:
    reports.begin(results)
    ready = packets([result(number, jobs) for number in results])
    sender = RawClient(port, "sender")
    began = time.perf_counter()
    sender.send(ready)
    reports.wait()
    seconds = max(reports.came.values()) - began
    sender.close()
    return len(results) / seconds


def latencies(port: int, reports: Reports, results: range, jobs: int, pace: float) -> list[float]:
    reports.begin(results)
    ready = packets([result(number, jobs) for number in results])
    sender, sent = RawClient(port, "sender"), {}
    began = time.perf_counter()
    for number, packet in zip(results, ready, strict=True):
        wait = began + len(sent) / pace - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        sent[number] = time.perf_counter()
        sender.send([packet])
    reports.wait()
    sender.close()
    warm = results[int(pace) :]
    return sorted(reports.came[number] - sent[number] for number in warm)


@contextmanager
def bare_loop(port: int) -> Iterator[int]:
    """The id of a process that answers."""
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


def bare_rate(port: int, results: int, jobs: int) -> tuple[float, float]:
    with bare_loop(port) as pid:
        return rate(port, Reports(port), range(results), jobs), cpu_seconds(pid) / results


def bare_latencies(port: int, jobs: int, pace: float) -> list[float]:
    with bare_loop(port):
        return latencies(port, Reports(port), range(6 * int(pace)), jobs, pace)


def start_controller(folder: Path, port: int, jobs: int) -> subprocess.Popen[bytes]:
    (folder / "root").mkdir()
    env = {
        **os.environ,
        "LC_NODE": "edge1",
        "LC_MQTT_URL": f"mqtt://127.0.0.1:{port}",
        "LC_STATE_DIR": str(folder / "state"),
        "LC_ROOT": str(folder / "root"),
        "LC_LOG": "warning",
    }
    states: set[bytes] = set()
    online, there = threading.Event(), threading.Event()

    def note(topic: bytes, payload: bytes, _now: float) -> None:
        online.set()
        if b"/jobs/" in topic and payload:
            states.add(topic)
            if len(states) == jobs:
                there.set()

    watcher = RawClient(port, "watcher", note)
    watcher.subscribe("sedna/state/edge1/#")
    process = subprocess.Popen([sys.executable, "-m", "lc_events", "run"], env=env)
    assert online.wait(30)
    watcher.send(packets([insert(job) for job in range(jobs)]))
    assert there.wait(30)
    watcher.close()
    return process


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--pace", type=float, default=500)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Mosquitto(folder / "mosquitto", max_inflight_messages=500) as broker:
            bare = [bare_rate(broker.port, given.results, given.jobs) for _ in range(given.runs)]
            bare_paced = bare_latencies(broker.port, given.jobs, given.pace)
            process = start_controller(folder, broker.port, given.jobs)
            try:
                reports, ours, used = Reports(broker.port), [], cpu_seconds(process.pid)
                for run in range(given.runs):
                    first = run * given.results
                    reports.confirm()
                    ours.append(rate(broker.port, reports, range(first, first + given.results), given.jobs))
                used = (cpu_seconds(process.pid) - used) / given.results / given.runs
                reports.confirm()
                first = given.runs * given.results
                paced = latencies(
                    broker.port, reports, range(first, first + 6 * int(given.pace)), given.jobs, given.pace
                )
                resident = memory_mb(process.pid)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)
    floor = [found for found, _ in bare]
    ratio = statistics.median(ours) / statistics.median(floor)
    cpu = statistics.median(cpu for _, cpu in bare)
    print(f"bare paho loop, one reply: {_rates(floor)} results/s, {cpu * 1e6:.0f} us of CPU each")
    print(
        f"controller, durable:       {_rates(ours)} results/s, {ratio:.2f} of the bare loop, {used * 1e6:.0f} us each"
    )
    print(f"paced at {given.pace:.0f}/s, bare:    {_percentiles(bare_paced)}")
    print(f"paced at {given.pace:.0f}/s, durable: {_percentiles(paced)}")
    print(f"resident: {resident:.0f} MB")


def _rates(found: list[float]) -> str:
    return f"{statistics.median(found):,.0f} ({min(found):,.0f} to {max(found):,.0f})"


def _percentiles(found: list[float]) -> str:
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    return f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, max {found[-1] * 1e3:.1f} ms"


if __name__ == "__main__":
    main()
