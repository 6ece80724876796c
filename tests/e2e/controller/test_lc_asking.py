from __future__ import annotations

import base64
import json
from itertools import pairwise

import pytest
from support.link import Link
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.waiting import eventually

from lc_events.application.chain import next_hash
from lc_events.mqtt.oneshot import request
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.settings import MqttSettings


@pytest.fixture
def asked(lc, shared_mosquitto):
    """Ask as a throw-away client and return the answer as parsed JSON."""

    def ask(verb: str, *, response_topic: str | None = None, **fields: object) -> dict:
        settings = MqttSettings.from_url(shared_mosquitto.url)
        question = Publication(
            lc.topic(f"ask/{{node}}/{verb}"), json.dumps(fields).encode(), response_topic=response_topic
        )
        answers = response_topic or lc.topic(f"answer/{{node}}/{fields['reply_to']}")
        return json.loads(request(settings, question, answers).payload)

    return ask


@pytest.fixture
def trained(lc):
    """A job that has triggered its first training."""
    lc.write("/data/ds.txt", "".join(f"a{i} 0\n" for i in range(10)))
    gm = PlayedGm(lc)
    gm.dataset()
    gm.job()
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    newest = "state/{node}/jobs/default/job1"
    eventually(lambda: lc.latest(newest)["gm_message"] and lc.latest(newest)["triggers"]["train"] == "completed")
    return gm


def test_state_answers_what_the_retained_topic_says(lc, trained, asked):
    answer = asked("state", request_id="r1", reply_to="me", name="job1")
    assert (answer["request_id"], answer["status"], answer["error"]) == ("r1", "ok", None)
    assert answer["data"]["name"] == "job1"
    eventually(lambda: asked("state", request_id="r2", reply_to="me", name="job1")["data"] == lc.job())


def test_state_at_a_version_is_the_state_then(trained, asked):
    answer = asked("state", request_id="r1", reply_to="me", name="job1", at_version=1)
    assert (answer["data"]["version"], answer["data"]["round"]) == (1, 0)


def test_history_comes_in_pages_whose_stored_bytes_prove_the_chain(lc, trained, asked):
    events, first = [], 1
    while first is not None:
        page = asked("history", request_id="r", reply_to="me", name="job1", from_version=first, limit=2, raw=True)[
            "data"
        ]
        assert len(page["events"]) <= 2
        events += page["events"]
        first = page["next_version"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    hash_ = ""
    for event in events:
        name = event["type"].split(".")[-2]
        stored = base64.b64decode(event["stored"])
        assert event["prevhash"] == hash_
        hash_ = next_hash(hash_, event["subject"], event["sequence"], name, stored)
        assert event["hash"] == hash_
    assert all(a["hash"] == b["prevhash"] for a, b in pairwise(events))


def test_verify_says_up_to_where_the_stream_is_sound(lc, trained, asked):
    def agree() -> bool:
        answer = asked("verify", request_id="r1", reply_to="me", name="job1")["data"]
        head = lc.latest("state/{node}/heads/default/job1")
        return answer["ok"] is True and (answer["version"], answer["hash"]) == (head["version"], head["hash"])

    eventually(agree)


def test_a_response_topic_of_mqtt_5_is_answered_without_reply_to(lc, trained, asked):
    topic = lc.topic("answer/{node}/someone")
    assert asked("state", response_topic=topic, name="job1")["data"]["name"] == "job1"


@pytest.mark.parametrize(
    ("verb", "fields", "code"),
    [
        ("state", {"name": "nothing"}, "not_found"),
        ("state", {"name": "job1", "at_version": 99}, "not_found"),
        ("state", {"name": "job1", "at_version": 1, "at_time": "2026-05-09T03:00:00Z"}, "malformed"),
        ("state", {"name": "job1", "at_time": "yesterday"}, "malformed"),
        ("state", {"name": "../job1"}, "malformed"),
        ("state", {}, "malformed"),
        ("history", {"name": "job1", "limit": 0}, "malformed"),
        ("dance", {"name": "job1"}, "verb"),
    ],
)
def test_a_wrong_request_is_answered_with_a_code_and_a_hint(trained, asked, verb, fields, code):
    answer = asked(verb, request_id="r1", reply_to="me", **fields)
    assert (answer["status"], answer["error"]["code"], answer["data"]) == ("error", code, None)
    assert answer["error"]["message"]


@pytest.mark.parametrize("payload", [b"{}", b"nonsense", b'{"reply_to":"a/b","name":"job1"}', b'{"reply_to":7}'])
def test_a_request_with_nobody_to_answer_to_is_refused_on_the_errors_topic(lc, payload):
    lc.tap.publish(lc.topic("ask/{node}/state"), payload)
    error = lc.tap.wait_for(lambda m: m.topic == lc.topic("errors/{node}"))
    assert json.loads(error.payload)["topic"] == lc.topic("ask/{node}/state")


def test_beyond_the_rate_each_request_is_told_so(lc, trained):
    topic = lc.topic("ask/{node}/state")
    lc.tap.publish_all(
        [(topic, json.dumps({"request_id": str(n), "reply_to": "me", "name": "job1"}).encode()) for n in range(60)]
    )
    answers = [
        json.loads(m.payload) for m in lc.tap.wait_for_count(60, lambda m: m.topic == lc.topic("answer/{node}/me"))
    ]
    assert {answer["request_id"] for answer in answers} == {str(n) for n in range(60)}
    assert {answer["error"]["code"] for answer in answers if answer["error"]} == {"rate"}
    assert sum(answer["status"] == "ok" for answer in answers) >= 20


def test_requests_are_answered_while_the_broker_cannot_be_asked_how_far_it_has_the_log(
    shared_mosquitto, topic_root, tmp_path
):
    def is_marker(data: bytes) -> bool:
        return data[0] >> 4 != 8 and b"/outbox-" in data  # 8 is SUBSCRIBE

    with (
        Link(shared_mosquitto.port, is_marker) as link,
        ControllerProcess(
            tmp_path, port=shared_mosquitto.port, topic_root=topic_root, mqtt_url=f"mqtt://127.0.0.1:{link.port}"
        ) as lc,
    ):
        settings = MqttSettings.from_url(shared_mosquitto.url)
        question = Publication(lc.topic("ask/{node}/state"), b'{"request_id":"r1","reply_to":"me","name":"job1"}')
        answer = request(settings, question, lc.topic("answer/{node}/me"), timeout=5)
        assert json.loads(answer.payload)["request_id"] == "r1"
        assert lc.tap.of(lc.topic("state/{node}/outbox")) == []
