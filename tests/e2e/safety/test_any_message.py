"""Whatever comes on whatever topic: the controller lives, and a good job beside it is unharmed."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.invariants import assert_invariants
from support.played_gm import PlayedGm, train_ready
from support.sedna import DATASET, JOB, condition, dataset_resource, job_resource, model, output
from support.waiting import eventually

EXAMPLES = 60
RESULTS = "worker/{node}/w9/info"

TOPICS = (
    f"down/{{node}}/{JOB}/default/job9",
    f"down/{{node}}/{JOB}/default/job8",
    f"down/{{node}}/{DATASET}/default/ds9",
    "down/{node}/pod/default/x",
    "down/{node}/ack",
    "down/{node}",
    f"down/{{node}}/{JOB}/default",
    f"down/{{node}}/{JOB}/UPPER/job9",
    RESULTS,
    "tick/{node}",
    "ask/{node}/state",
    "ask/{node}/history",
    "ask/{node}/why",
    "ask/{node}/verify",
    "ask/{node}/nothing",
    "ask/{node}/state/more",
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["job9", "ds9", "default", "", "0.5", "Train", "Waiting", "2024-01-01T00:00:00Z", "24:00", "∞"])
)
NAMES = """
    id header content namespace resourceKind resourceName operation metadata annotations spec status conditions type
    stage data dataset name trainProb trainSpec trigger condition operator threshold metric timer start end outputDir
    url format kind ownerName ownerKind results ids time request_id reply_to uid value env
"""
numbers = itertools.count()
names = st.sampled_from(NAMES.split())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | st.text(max_size=5), inner, max_size=6)
)


def valid_job() -> dict[str, Any]:
    conditions = (
        condition("Train", "Completed", "2024-01-01T00:00:00Z", output("/output/job9/train/1/index.pkl")),
        condition("Eval", "Waiting", "2024-01-01T00:00:01Z"),
    )
    resource = job_resource(*conditions, name="job9", dataset="ds9", output_dir="/output/job9", uid="u-1")
    return message(JOB, "job9", resource)


def valid_dataset() -> dict[str, Any]:
    return message(DATASET, "ds9", dataset_resource(name="ds9", url="/data/ds9.txt"))


def message(kind: str, name: str, content: object) -> dict[str, Any]:
    header = {"namespace": "default", "resourceKind": kind, "resourceName": name, "operation": "insert"}
    return {"id": "any", "header": header, "content": content}


def valid_result() -> dict[str, Any]:
    named = {"id": "any", "name": "w9", "namespace": "default", "ownerName": "job9", "ownerKind": JOB}
    return {**named, "kind": "train", "status": "completed", "results": [model("/output/job9/train/1/index.pkl")]}


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, bytes]:
    """A good message, on its topic, with one to three places in it replaced or taken away."""
    topic, make = draw(st.sampled_from([(TOPICS[0], valid_job), (TOPICS[2], valid_dataset), (RESULTS, valid_result)]))
    found = make()
    found["id"] = f"any-{next(numbers)}"
    for _ in range(draw(st.integers(1, 3))):
        at: Any = found
        while True:
            places = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            if isinstance(at[place], dict | list) and at[place] and draw(st.integers(0, 3)):
                at = at[place]
                continue
            if draw(st.booleans()):
                at[place] = draw(values)
            else:
                del at[place]
            break
    return topic, json.dumps(found).encode()


payloads = st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode())
messages = spoilt() | st.tuples(st.sampled_from(TOPICS), payloads) | spoilt()


def test_any_message_on_any_topic_harms_nobody(lc, gm: PlayedGm):
    lc.write("/data/ds.txt", "a\nb\n")
    lc.write("/data/ds9.txt", "a\nb\n")
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 2})

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(st.lists(messages, min_size=10, max_size=20))
    def send(batch: list[tuple[str, bytes]]) -> None:
        lc.tap.publish_all((lc.topic(pattern), payload) for pattern, payload in batch)
        assert lc.is_running

    send()
    gm.result(id="still-there")
    eventually(lambda: any(m.json["id"] == "still-there" for m in lc.tap.of(lc.topic("worker/{node}/w1/done"))), 30)
    lc.append("/data/ds.txt", "c\nd\ne\n")
    ready = eventually(lambda: [m.json for m in gm.up if m.json["content"] == train_ready(1)])
    assert len(ready) == 1
    assert lc.file("/output/job1/data/train/1/data.txt").read_text() == "a\nc\nd\ne\n"
    assert "Traceback" not in lc.log
    assert '"code":"internal"' not in json.dumps(lc.errors(), separators=(",", ":"))
    assert_invariants(lc, ["still-there"])
    lc.restart(kill=True)
    assert_invariants(lc, ["still-there"])
    assert "is left out" not in lc.log
