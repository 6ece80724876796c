"""Brokers that forget or go away for long, links that are cut: all arrives in order, repeats under equal ids."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Self

import pytest
from support.bridged import Bridged
from support.heard import events_heard, is_all_heard
from support.invariants import assert_invariants, histories
from support.link import Link
from support.local_controller import ControllerProcess
from support.mosquitto import Mosquitto
from support.played_gm import PlayedGm, train_ready
from support.tap import Tap
from support.waiting import eventually

from lc_events.application.chain import event_id

JOB1 = "default/lifelonglearningjob/job1"
RESULTS = 1500
NOTES = [f"note-{number:04}" for number in range(RESULTS)]


@pytest.fixture
def forgetful(tmp_path):
    """A broker without a database: a restart forgets sessions, retained and queued messages."""
    with Mosquitto(tmp_path / "mosquitto") as broker:
        yield broker


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_that_forgot_everything_is_told_again(how, forgetful, topic_root, tmp_path):
    with (
        Link(forgetful.port) as link,
        ControllerProcess(
            tmp_path, port=forgetful.port, topic_root=topic_root, mqtt_url=f"mqtt://127.0.0.1:{link.port}"
        ) as lc,
    ):
        gm = PlayedGm(lc, with_ids=False)
        lc.write("/data/ds.txt", "a\nb\nc\nd\ne\n")
        gm.dataset()
        gm.job()
        gm.expect_all({"numberOfSamples": 5}, train_ready(1))
        gm.result(id="r-1")
        gm.next_up()
        before = {message.json["id"] for message in gm.up}
        births = len(lc.births())
        link.cut()
        forgetful.stop() if how == "stop" else forgetful.kill()
        forgetful.start()
        wait_until_heard_by(lc.tap, f"{topic_root}/anything")
        link.mend()
        again = eventually(lambda: lc.births()[births:])[0].order
        eventually(lambda: {m.json["id"] for m in lc.tap.messages[again:] if "/up/" in m.topic} >= before)
        assert {message.json["id"] for message in gm.all_up()} == before
        with Tap(forgetful.port, f"{topic_root}/state/#") as late:
            topics = {"status", "jobs/default/job1", "datasets/default/ds", "heads/default/job1"}
            wanted = {lc.topic(f"state/{{node}}/{topic}") for topic in topics}
            eventually(lambda: wanted <= {message.topic for message in late.messages})
        gm.again()
        eventually(lambda: lc.job()["counts"]["gm_messages"] + lc.job()["counts"]["duplicates"] == 2)
        assert_invariants(lc, ["r-1"])


def wait_until_heard_by(tap: Tap, topic: str) -> None:
    """Wait until a tap that lost its broker is back."""
    with Tap(tap.port) as speaker:
        eventually(lambda: speaker.publish(topic, {}) or tap.of(topic))


def test_while_the_broker_is_away_it_goes_on_and_tells_all_of_it_in_order_later(mosquitto, topic_root, tmp_path):
    with ControllerProcess(tmp_path, port=mosquitto.port, topic_root=topic_root, tick_seconds=0.02) as lc:
        gm = PlayedGm(lc)
        lc.write("/data/ds.txt", "a\n")
        gm.dataset()
        gm.job("waits", trigger={"condition": {"operator": ">", "threshold": 10**6, "metric": "num_of_samples"}})
        gm.job("trains")
        gm.expect({"numberOfSamples": 1})
        eventually(lambda: lc.job("waits") and lc.job("trains"))
        mosquitto.stop()
        for _ in range(20):
            lc.append("/data/ds.txt", "".join(f"{n}\n" for n in range(50)))
        file = lc.file("/output/trains/data/train/1/data.txt")
        eventually(file.exists)
        eventually(lambda: stored(lc) > 300, 40)
        mosquitto.start()
        eventually(lambda: is_told(lc), 30)
        assert train_ready(1, "trains") in [message.json["content"] for message in gm.up]
        assert events_heard(lc.tap)
        counts = [m.json["content"]["numberOfSamples"] for m in gm.up if "numberOfSamples" in m.json["content"]]
        assert counts == sorted(counts)
        assert counts[-1] == 1001


def stored(lc: ControllerProcess) -> int:
    journal = lc.journal()
    try:
        return sum(journal.head(stream).version for stream in journal.rows.streams())
    finally:
        journal.close()


def is_told(lc: ControllerProcess) -> bool:
    journal = lc.journal()
    try:
        newest = {s: journal.head(s) for s in journal.rows.streams() if s.endswith(("trains", "/ds"))}
    finally:
        journal.close()
    told = {message.json["id"] for message in lc.tap.messages if "/events/" in message.topic}
    return all(event_id(lc.node, stream, head.version, head.hash) in told for stream, head in newest.items())


def test_1500_results_over_a_cut_link_arrive_in_order(tmp_path):
    with Bridged(tmp_path) as brokers:
        assert notes_over_a_cut_link(brokers, tmp_path) == NOTES


def test_1500_results_over_a_cut_link_all_arrive_when_a_queue_dropped_some(tmp_path):
    with Bridged(tmp_path, queued=600) as brokers:
        assert sorted(notes_over_a_cut_link(brokers, tmp_path)) == NOTES
        assert "Outgoing messages are being dropped for client local-edge1-out" in brokers.edge.log


def notes_over_a_cut_link(brokers: Bridged, folder: Path) -> list[str]:
    """The notes of results that were taken in while the link was cut, as they came to the cloud, which confirms all."""
    with (
        CloudGm(brokers.cloud.port) as gm,
        ControllerProcess(folder, port=brokers.edge.port, topic_root="sedna") as lc,
    ):
        edge = PlayedGm(lc)
        gm.insert("job1")
        eventually(lc.job)
        brokers.link.cut()
        lc.tap.publish_all(result(lc, number) for number in range(RESULTS))
        eventually(lambda: lc.job()["counts"]["worker_results"] == RESULTS, 40)
        brokers.link.mend()
        eventually(lambda: len(gm.notes) == RESULTS, 90, "all results in the cloud")
        eventually(lambda: unconfirmed(lc) == 0, 90, "all confirmed")
        assert_invariants(lc, [f"r-{number}" for number in range(RESULTS)])
        assert len({message.json["id"] for message in edge.all_up()}) == RESULTS
        return gm.notes


def result(lc: ControllerProcess, number: int) -> tuple[str, str]:
    named = {"id": f"r-{number}", "name": "w1", "ownerName": "job1", "ownerKind": "lifelonglearningjob"}
    results = [{"format": "pkl", "url": "/x", "note": NOTES[number]}]
    message = {**named, "kind": "train", "status": "running", "results": results}
    return lc.topic("worker/{node}/w1/info"), json.dumps(message)


def unconfirmed(lc: ControllerProcess) -> int:
    from lc_events.domain.job_fold import fold

    journal = lc.journal()
    try:
        return len(fold(JOB1, journal.stream(JOB1)).unconfirmed)
    finally:
        journal.close()


@pytest.mark.parametrize("was_saved", [True, False], ids=["saved", "never saved"])
@pytest.mark.parametrize("both", [False, True], ids=["the broker", "the whole box"])
def test_what_an_edges_broker_lost_when_it_was_killed_with_the_cloud_away_is_published_again(tmp_path, was_saved, both):
    with (
        Bridged(tmp_path, autosave_seconds=3600) as brokers,
        Tap(brokers.cloud.port, "sedna/events/#") as cloud,
        ControllerProcess(tmp_path, port=brokers.edge.port, topic_root="sedna") as lc,
    ):
        gm = PlayedGm(lc)
        gm.job()
        tell(lc, range(10))
        eventually(lambda: is_all_heard(cloud, histories(lc)), what="the first events in the cloud")
        brokers.link.cut()
        tell(lc, range(10, 30))
        if was_saved:
            brokers.edge.save()
        tell(lc, range(30, 50))
        if both:
            lc.kill()
        brokers.edge.kill()
        brokers.edge.start()
        if both:
            lc.start()
        brokers.link.mend()
        eventually(lambda: is_all_heard(cloud, histories(lc)), 60, "all events in the cloud")
        assert len(events_heard(cloud)[JOB1]) > 50


def tell(lc: ControllerProcess, numbers: range) -> None:
    """Have the controller take in results, and wait until the edge's broker has said their events."""
    lc.tap.publish_all(result(lc, number) for number in numbers)
    eventually(lambda: lc.job()["counts"]["worker_results"] == numbers.stop)
    eventually(lambda: is_all_heard(lc.tap, histories(lc)))


class CloudGm:
    """Inserts jobs and confirms all that comes up; `notes` of results in the order of their first arrival."""

    def __init__(self, port: int) -> None:
        self.notes: list[str] = []
        self._seen: set[str] = set()
        self._tap = Tap(port, "sedna/up/#", session_seconds=300)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._tap.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._tap.stop()

    def insert(self, name: str) -> None:
        from support.sedna import JOB, condition, job_resource

        header = {"namespace": "default", "resourceKind": JOB, "resourceName": name, "operation": "insert"}
        content = job_resource(condition("Train", "Running", "2024-01-01T00:00:00Z"), name=name)
        self._tap.publish(f"sedna/down/edge1/{JOB}/default/{name}", {"id": "m-1", "header": header, "content": content})

    def _run(self) -> None:
        taken = 0
        while not self._stopping.wait(0.05):
            messages = self._tap.messages[taken:]
            taken += len(messages)
            ids = []
            for message in messages:
                report = message.json
                ids.append(report["id"])
                if report["id"] not in self._seen:
                    self._seen.add(report["id"])
                    self.notes.append(report["content"]["output"]["models"][0]["note"])
            if ids:
                self._tap.publish("sedna/down/edge1/ack", {"ids": ids})
