"""What is published besides reports: retained latest values, and every event as a CloudEvent."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import datetime

from support.played_gm import deployed, evaluated, train_ready, trained
from support.sedna import DATASET, JOB
from support.tap import Tap, Tapped
from support.waiting import eventually

from lc_events.domain.dataset import fold_dataset
from lc_events.domain.job_fold import fold
from lc_events.domain.views import dataset_view, job_view

STREAM = f"default/{JOB}/job1"
DATASET_STREAM = "default/dataset/ds"
TEN = "".join(f"s{i}\n" for i in range(10))


def chained(previous: str, stream: str, version: int, name: str, state: bytes) -> str:
    """The hash of CONTRACT section 6, written down a second time."""
    digest = hashlib.sha256()
    for part in (previous.encode(), stream.encode(), str(version).encode(), name.encode(), state):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def retained(lc) -> dict[str, object]:
    """What the broker gives somebody who comes now, by topic below `state/NODE/`; of streams alone."""
    prefix, last = lc.topic("state/{node}/"), lc.topic("answer/{node}/nobody")
    with Tap(lc.tap.port, f"{prefix}#", last) as tap:
        tap.publish(last, b"")
        tap.wait_for_topic(last)
        values = {m.topic.removeprefix(prefix): m.json for m in tap.messages if m.retain}
    return {topic: value for topic, value in values.items() if topic not in ("status", "outbox")}


def replayed(lc) -> dict[str, object]:
    """The same values, made of the rows on disk alone."""
    with lc.journal() as journal:
        job = fold(STREAM, journal.stream(STREAM))
        dataset = fold_dataset(DATASET_STREAM, journal.stream(DATASET_STREAM))
        rows = journal.rows.rows(stream=STREAM)
    values: dict[str, object] = {}
    if rows:
        hash_ = ""
        for row in rows:
            hash_ = chained(hash_, STREAM, row.version, row.name, row.state)
        newest = json.loads(rows[-1].state)["time"]
        values["heads/default/job1"] = {"version": len(rows), "hash": hash_, "time": newest}
    if job.is_live:
        values["jobs/default/job1"] = job_view(job, "edge1")
        if job.model is not None:
            values["models/default/job1"] = job.model
    if dataset.is_live:
        values["datasets/default/ds"] = dataset_view(dataset)
    return values


def assert_retained_is_replayed(lc) -> dict:
    """Wait until what is retained is what a replay gives, and return it."""

    def agreed():
        values = retained(lc)
        return values == json.loads(json.dumps(replayed(lc))) and values

    return eventually(agreed, what="what is retained equals a replay")


def test_the_retained_values_are_a_replay_of_the_store_at_every_moment_of_a_job(lc, gm):
    lc.write("/data/ds.txt", "s0\n")
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 1})
    assert_retained_is_replayed(lc)
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"])
    assert assert_retained_is_replayed(lc)["jobs/default/job1"]["counts"]["ticks"] == 1
    lc.append("/data/ds.txt", TEN)
    gm.expect({"numberOfSamples": 11}, train_ready(1))
    assert_retained_is_replayed(lc)
    gm.result(status="running")
    gm.next_up()
    gm.move(*trained(1))
    assert gm.next_up()["content"]["phase"] == "Eval"
    assert_retained_is_replayed(lc)
    lc.write("/output/job1/eval/1/index.pkl", "model")
    gm.move(*evaluated(1))
    assert gm.next_up()["content"]["phase"] == "Deploy"
    model = assert_retained_is_replayed(lc)["models/default/job1"]
    assert model == {
        "round": 1,
        "url": "/output/job1/deploy/index.pkl",
        "format": "pkl",
        "sha256": hashlib.sha256(b"model").hexdigest(),
        "size": 5,
        "time": model["time"],
    }
    gm.move(*deployed(1))
    state = eventually(lambda: (s := lc.job())["gm_message"] == gm.last_id and s)
    assert state["triggers"] == {"train": "ready", "eval": "ready", "deploy": "ready"}
    assert_retained_is_replayed(lc)
    before = assert_retained_is_replayed(lc)
    lc.stop()
    assert retained(lc) == before
    lc.start()
    eventually(lambda: lc.job()["version"] > state["version"])  # ticked at the restart
    assert_retained_is_replayed(lc)
    gm.delete("job1")
    eventually(lambda: retained(lc).keys() == {"heads/default/job1", "datasets/default/ds"})
    assert_retained_is_replayed(lc)
    gm.job()
    assert eventually(lambda: (s := lc.job()) and s["generation"] == 2)
    assert_retained_is_replayed(lc)
    gm.delete("ds", DATASET)
    eventually(lambda: "datasets/default/ds" not in retained(lc))
    assert_retained_is_replayed(lc)


def test_a_repeated_delete_is_answered_by_the_empty_payload_again(lc, gm):
    gm.job()
    topic = lc.topic("state/{node}/jobs/default/job1")
    gm.delete()
    empty = eventually(lambda: [m for m in lc.tap.of(topic) if not m.payload])
    gm.delete()
    eventually(lambda: [m for m in lc.tap.of(topic) if not m.payload][len(empty) :])


def test_every_event_is_published_once_in_order_as_a_cloud_event_that_can_be_checked(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 10}, train_ready(1))
    gm.result(results=[{"format": "pkl", "url": "u\u00e9", "metrics": {"f": 1.0, "e": 1e21, "n": 2**63 - 1}}])
    gm.next_up()
    gm.move(*trained(1))
    gm.next_up()
    with lc.journal() as journal:
        eventually(lambda: len(published(lc)) == len(journal.rows.rows()), what=str(len(published(lc))))
        rows = journal.rows.rows()
    for stream, topic in ((STREAM, "jobs/default/job1"), (DATASET_STREAM, "datasets/default/ds")):
        previous = ""
        stored = [row for row in rows if row.stream == stream]
        messages = [m for m in published(lc) if m.topic == lc.topic(f"events/{{node}}/{topic}")]
        for version, (message, row) in enumerate(zip(messages, stored, strict=True), start=1):
            event = message.json
            head, _, data = message.payload.partition(b',"data":')
            assert head.endswith(b'"')
            assert data.removesuffix(b"}") == row.state
            hash_ = chained(previous, stream, version, event["type"].split(".")[3], data.removesuffix(b"}"))
            assert event == {
                "specversion": "1.0",
                "id": f"edge1/{stream}/{version}-{hash_[:12]}",
                "source": "/sedna/edge1",
                "subject": stream,
                "type": event["type"],
                "time": event["data"]["time"],
                "datacontenttype": "application/json",
                "sequence": version,
                "hash": hash_,
                "prevhash": previous,
                "data": event["data"],
            }
            assert event["type"].startswith("io.sedna.lc.")
            assert event["type"].endswith(".v1")
            assert datetime.fromisoformat(event["time"]).utcoffset() is not None
            assert not message.retain
            previous = hash_
        assert previous == stored[-1].hash


def published(lc) -> list[Tapped]:
    """All CloudEvents that were heard."""
    return [m for m in lc.tap.messages if m.topic.startswith(lc.topic("events/{node}/"))]


def test_a_report_carries_the_id_of_the_event_that_caused_it_and_comes_before_it(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    _, ready = gm.expect({"numberOfSamples": 10}, train_ready(1))
    event = lc.tap.wait_for(lambda m: m.topic.startswith(lc.topic("events/")) and m.json["id"] == ready["id"])
    assert event.json["type"] == "io.sedna.lc.TrainDataWritten.v1"
    report = next(m for m in gm.up if m.json["id"] == ready["id"])
    assert report.order < event.order


def test_latest_values_are_published_at_most_every_100_ms_and_end_with_the_newest(lc, gm):
    gm.job()
    topic = lc.topic("state/{node}/jobs/default/job1")
    eventually(lc.job)
    count, began = len(lc.tap.of(topic)), time.monotonic()
    for number in range(50):
        gm.result(id=f"r-{number}", status="running")
    eventually(lambda: lc.job()["counts"]["worker_results"] == 50)
    elapsed = time.monotonic() - began
    assert len(lc.tap.of(topic)) - count <= 1 + elapsed / 0.1
