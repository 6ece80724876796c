from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.errors import RefusedError
from lc_events.messages.json import UINT64_MAX
from lc_events.messages.worker import CancelOrder, WorkOrder, done, read_order, read_worker

REPORT: dict[str, Any] = {
    "name": "w1",
    "namespace": "default",
    "ownerName": "job1",
    "ownerKind": "lifelonglearningjob",
    "kind": "train",
    "status": "completed",
    "results": [{"format": "pkl", "url": "/output/job1/train/1/index.pkl", "metrics": {"acc": [0.9], "loss": 1}}],
}


def refusal(**changes: object) -> str:
    with pytest.raises(RefusedError) as caught:
        read_worker(orjson.dumps({**REPORT, **changes}), worker="w1")
    return caught.value.code


def test_a_report_is_read_verbatim():
    message = read_worker(orjson.dumps({**REPORT, "id": "r-1", "ownerInfo": {"n": 3}}), worker="w1")
    assert (message.id, message.name, message.owner_name) == ("r-1", "w1", "job1")
    assert (message.kind, message.status) == ("train", "completed")
    assert message.results == REPORT["results"]
    assert message.owner_info == {"n": 3}


@pytest.mark.parametrize("results", [None, [], [None], [{"url": "u", "foo": {"b": [1, 2], "a": "z<&>"}}]])
def test_results_of_any_shape_are_passed_on(results: object):
    assert read_worker(orjson.dumps({**REPORT, "results": results}), worker="w1").results == results


def test_absent_results_are_null():
    report = {name: value for name, value in REPORT.items() if name != "results"}
    assert read_worker(orjson.dumps(report), worker="w1").results is None


def test_kind_and_status_are_any_words():
    message = read_worker(orjson.dumps({**REPORT, "kind": "banana", "status": "sleeping"}), worker="w1")
    assert (message.kind, message.status) == ("banana", "sleeping")


def test_large_and_odd_numbers_in_results_are_kept():
    payload = orjson.dumps(REPORT).replace(
        b'"results":[', b'"results":[{"n":12345678901234567890,"f":1.0,"e":1e21,"m":-9223372036854775808},'
    )
    results = read_worker(payload, worker="w1").results
    assert results is not None
    assert results[0] == {"n": 12345678901234567890, "f": 1.0, "e": 1e21, "m": -(2**63)}


def test_an_empty_namespace_is_the_default_one():
    assert read_worker(orjson.dumps({**REPORT, "namespace": ""}), worker="w1").namespace == "default"


@pytest.mark.parametrize("kind", ["LifelongLearningJob", "dataset", "", "nokind"])
def test_an_owner_that_is_no_job_is_refused(kind: str):
    assert refusal(ownerKind=kind) == "kind"


def test_the_name_is_that_of_the_topic():
    assert refusal(name="w2") == "mismatch"


@pytest.mark.parametrize(
    "changes",
    [
        {"namespace": 3},
        {"namespace": "../x"},
        {"ownerName": "no/job"},
        {"kind": ""},
        {"kind": "x" * 65},
        {"status": 3},
        {"status": "x" * 65},
        {"results": {}},
        {"results": [3]},
        {"ownerInfo": [1]},
        {"id": ""},
        {"id": "x" * 257},
    ],
)
def test_a_report_of_another_shape_is_malformed(changes: dict[str, object]):
    assert refusal(**changes) == "malformed"


@pytest.mark.parametrize("payload", [b"", b'{"name":"w1",', b"[]", orjson.dumps(REPORT) + b"xyz", b"{}"])
def test_what_is_no_report_is_malformed(payload: bytes):
    with pytest.raises(RefusedError) as caught:
        read_worker(payload, worker="w1")
    assert caught.value.code == "malformed"


def test_an_integer_beyond_64_bits_is_refused():
    payload = orjson.dumps(REPORT).replace(b'"loss":1', b'"loss":%d' % (UINT64_MAX + 1))
    with pytest.raises(RefusedError):
        read_worker(payload, worker="w1")


@given(
    st.dictionaries(st.sampled_from([*REPORT, "id", "ownerInfo"]), st.none() | st.integers(0, 9) | st.text(max_size=70))
)
def test_a_report_with_anything_anywhere_is_read_or_refused(changes: dict[str, object]):
    try:
        message = read_worker(orjson.dumps({**REPORT, **changes}), worker="w1")
    except RefusedError:
        return
    assert message.name == "w1"


def test_done_says_that_a_message_is_on_disk_or_why_not():
    assert orjson.loads(done("r-1")) == {"id": "r-1", "error": None}
    assert orjson.loads(done(None, "kind")) == {"id": None, "error": "kind"}


def test_an_order_starts_or_cancels():
    order = {
        "id": "o-1",
        "job": "job1",
        "stage": "Train",
        "round": 1,
        "command": ["python", "train.py"],
        "env": {"A": "b"},
    }
    read = read_order(orjson.dumps(order))
    assert isinstance(read, WorkOrder)
    assert read.command == ["python", "train.py"]
    assert isinstance(read_order(b'{"id":"o-1","cancel":true}'), CancelOrder)


@pytest.mark.parametrize(
    "payload", [b"{}", b'{"id":"o-1","cancel":false}', b'{"cancel":true}', b'{"id":"o-1","command":[]}']
)
def test_what_is_no_order_is_malformed(payload: bytes):
    with pytest.raises(RefusedError) as caught:
        read_order(payload)
    assert caught.value.code == "malformed"
