from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sedna import DATASET, JOB, condition, dataset_resource, down, down_payload, job_resource

from lc_events.errors import RefusedError
from lc_events.messages.gm import UpMessage, read_acknowledgement, read_down, up


def read(payload: bytes, *, kind: str = JOB, namespace: str = "default", name: str = "job1"):
    return read_down(payload, kind=kind, namespace=namespace, name=name)


def refusal(payload: bytes, **topic: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        read(payload, **topic)
    return caught.value.code


def test_an_insert_carries_the_resource_as_it_was_sent():
    content = job_resource(condition("Train", "Waiting"))
    message = read(down_payload(content, message_id="m-1"))
    assert (message.id, message.operation, message.stream) == ("m-1", "insert", "default/lifelonglearningjob/job1")
    assert message.content == content
    assert message.resource is not None


def test_content_may_be_base64_as_sednas_websocket_carries_it():
    content = job_resource(condition("Train", "Waiting"))
    wire = base64.b64encode(orjson.dumps(content)).decode()
    assert read(down_payload(wire)).content == content


def test_an_id_is_optional():
    assert down(job_resource()).id is None


def test_a_delete_needs_no_valid_resource():
    assert read(down_payload({"spec": "broken"}, operation="delete")).resource is None
    assert read(down_payload(None, operation="delete")).operation == "delete"


def test_a_dataset_is_read_on_its_own_topic():
    message = read(down_payload(dataset_resource(), kind=DATASET, name="ds"), kind=DATASET, name="ds")
    assert message.stream == "default/dataset/ds"


def test_an_empty_namespace_is_the_default_one():
    payload = orjson.loads(down_payload(job_resource()))
    payload["header"]["namespace"] = ""
    payload["content"]["metadata"]["namespace"] = ""
    assert read(orjson.dumps(payload)).namespace == "default"


def test_unknown_fields_of_message_and_header_are_let_through():
    payload = orjson.loads(down_payload(job_resource()))
    payload["header"]["more"] = payload["more"] = 1
    assert read(orjson.dumps(payload)).operation == "insert"


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"null", b'{"header":{}}', b"\xff\xfe", b'{"header":3}'])
def test_what_is_no_message_is_malformed(payload: bytes):
    assert refusal(payload) == "malformed"


@pytest.mark.parametrize("message_id", ["", "x" * 257, 3, ["m"]])
def test_an_id_is_a_short_text(message_id: Any):
    assert refusal(down_payload(job_resource(), message_id=message_id)) == "malformed"


@pytest.mark.parametrize("content", ["no base64!", "e30", base64.b64encode(b"[]").decode(), "ü", 3, [1]])
def test_content_that_is_no_object_is_malformed(content: object):
    assert refusal(down_payload(content)) == "malformed"


def test_an_unknown_kind_is_refused():
    assert refusal(down_payload({}, kind="pod"), kind="pod") == "kind"


@pytest.mark.parametrize("operation", ["status", "", "Insert", "patch"])
def test_an_unknown_operation_is_refused(operation: str):
    assert refusal(down_payload(job_resource(), operation=operation)) == "operation"


def test_topic_and_header_must_agree():
    payload = down_payload(job_resource())
    assert refusal(payload, name="job2") == "mismatch"
    assert refusal(payload, namespace="other") == "mismatch"
    assert refusal(payload, kind=DATASET) == "mismatch"


def test_header_and_content_must_agree():
    assert refusal(down_payload(job_resource(name="job2"))) == "mismatch"
    assert refusal(down_payload({**job_resource(), "kind": "Dataset"})) == "mismatch"


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {**job_resource(), "apiVersion": "sedna.io/v2"},
        job_resource(train_prob=2.0),
        job_resource(output_dir="/../.."),
        job_resource(dataset="../etc"),
        {**job_resource(), "status": {"conditions": ["Waiting"]}},
        {**job_resource(), "status": {"conditions": {"type": "Waiting"}}},
    ],
)
def test_a_resource_that_breaks_a_rule_is_invalid(content: object):
    assert refusal(down_payload(content)) == "invalid"


def test_a_refusal_names_the_place_and_never_the_value():
    content = job_resource(annotations={"sedna.io/credential": 12345678})
    with pytest.raises(RefusedError) as caught:
        read(down_payload(content))
    assert "metadata.annotations" in str(caught.value)
    assert "12345678" not in str(caught.value)


def test_integers_beyond_64_bits_are_refused_at_the_door():
    assert (
        refusal(down_payload(job_resource()).replace(b'"threshold":3', b'"threshold":9223372036854775808'))
        == "malformed"
    )


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(payload: bytes):
    with pytest.raises(RefusedError):
        read(payload)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PLACES = (
    ("id",),
    ("header",),
    ("header", "namespace"),
    ("header", "resourceKind"),
    ("header", "operation"),
    ("content",),
    ("content", "kind"),
    ("content", "metadata"),
    ("content", "metadata", "uid"),
    ("content", "spec"),
    ("content", "spec", "dataset"),
    ("content", "spec", "trainSpec"),
    ("content", "spec", "trainSpec", "trigger"),
    ("content", "spec", "outputDir"),
    ("content", "status"),
    ("content", "status", "conditions"),
)


@given(st.sampled_from(PLACES), json_values)
def test_a_message_with_anything_anywhere_is_read_or_refused(place: tuple[str, ...], value: object):
    payload = orjson.loads(down_payload(job_resource(condition("Train", "Waiting"))))
    inner = payload
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    try:
        message = read(orjson.dumps(payload))
    except RefusedError:
        return
    assert message.name == "job1"


def test_an_acknowledgement_names_ids():
    assert read_acknowledgement(b'{"ids":["a","b"],"more":1}').ids == ["a", "b"]


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"ids":"a"}', b'{"ids":[1]}', b'{"ids":[""]}'])
def test_another_acknowledgement_is_malformed(payload: bytes):
    with pytest.raises(RefusedError) as caught:
        read_acknowledgement(payload)
    assert caught.value.code == "malformed"


def test_an_upstream_message_carries_output_even_when_null_and_the_kind_as_the_object_writes_it():
    content = {"phase": "Train", "status": "Ready", "input": {"dataURL": "/x"}, "output": None}
    wire = up("e-1", kind="LifelongLearningJob", namespace="default", name="job1", content=content)
    assert orjson.loads(wire) == {
        "id": "e-1",
        "header": {
            "namespace": "default",
            "resourceKind": "LifelongLearningJob",
            "resourceName": "job1",
            "operation": "status",
        },
        "content": content,
    }
    assert UpMessage.model_validate_json(wire).content == content
