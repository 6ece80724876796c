"""Messages faster than anybody sends them on purpose: the last word wins, and nothing breaks."""

from __future__ import annotations

from support.invariants import assert_invariants, histories
from support.played_gm import PlayedGm, train_ready
from support.sedna import JOB, condition, job_resource
from support.waiting import eventually

from lc_events.domain.job_fold import fold
from lc_events.messages.json import dumps

STREAM = "default/lifelonglearningjob/job1"


def insert(lc, number: int, threshold: float = 3, name: str = "job1") -> tuple[str, bytes]:
    trigger = {"condition": {"operator": ">", "threshold": threshold, "metric": "num_of_samples"}}
    waiting = condition("Train", "Waiting", "2024-01-01T00:00:00Z")
    resource = job_resource(waiting, name=name, trigger=trigger, output_dir=f"/output/{name}")
    return message(lc, number, "insert", resource, name)


def message(lc, number: int, operation: str, content: object, name: str = "job1") -> tuple[str, bytes]:
    header = {"namespace": "default", "resourceKind": JOB, "resourceName": name, "operation": operation}
    payload = dumps({"id": f"b-{number}", "header": header, "content": content})
    return lc.topic(f"down/{{node}}/{JOB}/default/{name}"), payload


def test_of_300_inserts_in_a_burst_the_last_one_counts(lc):
    lc.tap.publish_all([insert(lc, number, threshold=number) for number in range(300)])
    eventually(lambda: lc.job() and lc.job()["gm_message"] == "b-299")
    events = assert_invariants(lc, [f"b-{number}" for number in range(300)])[STREAM]
    assert fold(STREAM, events).trigger.threshold == 299
    assert lc.job()["counts"]["gm_messages"] == 300


def test_of_100_pairs_of_insert_and_delete_the_last_one_counts(lc, gm: PlayedGm):
    lc.write("/data/ds.txt", "a\nb\nc\nd\ne\n")
    gm.dataset()
    gm.expect({"numberOfSamples": 5})
    burst = []
    for number in range(0, 200, 2):
        burst += [insert(lc, number), message(lc, number + 1, "delete", None)]
    lc.tap.publish_all(burst)
    eventually(lambda: len(histories(lc).get(STREAM, [])) >= 300 and lc.job() is None)
    events = assert_invariants(lc, [f"b-{number}" for number in range(200)])[STREAM]
    assert fold(STREAM, events).generation == 100
    lc.tap.publish_all([insert(lc, 200)])
    eventually(lambda: lc.job() and lc.job()["samples"]["seen"] == 5)
    eventually(lambda: gm.up[-1].json["content"] == train_ready(1))
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == "a\nb\nc\nd\n"
    assert_invariants(lc)


def test_datasets_deleted_and_inserted_in_a_burst_are_followed_on(lc, gm: PlayedGm):
    lc.write("/data/ds.txt", "a\n")
    gm.job()
    for _ in range(50):
        gm.dataset()
        lc.append("/data/ds.txt", "x\n")
        gm.delete("ds", "dataset")
    gm.dataset()
    lc.append("/data/ds.txt", "last\n")
    eventually(lambda: (lc.job() or {"samples": {"seen": 0}})["samples"]["seen"] == 52)
    assert_invariants(lc)


def test_60_jobs_at_once_are_all_ready(lc, gm: PlayedGm):
    lc.write("/data/ds.txt", "".join(f"{number}\n" for number in range(10)))
    gm.dataset()
    names = [f"job{number}" for number in range(60)]
    lc.tap.publish_all([insert(lc, number, name=name) for number, name in enumerate(names)])
    eventually(lambda: len(gm.up) == 61, 20)
    ready = [m.json["content"] for m in gm.up if "phase" in m.json["content"]]
    assert sorted(ready, key=str) == sorted((train_ready(1, name) for name in names), key=str)
    assert_invariants(lc, [f"b-{number}" for number in range(60)])
