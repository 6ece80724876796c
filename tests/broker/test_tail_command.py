from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator

import orjson
import pytest
from support.given import arrive, given, gm, reported, ticked
from support.mosquitto import Mosquitto
from support.program import Program
from support.sedna import condition
from support.stores import stored
from support.tap import Tap
from support.waiting import eventually

from lc_events.application.cloud_events import cloud_event
from lc_events.application.journal import open_journal
from lc_events.domain.events import LC_EVENTS, Registry

ROOT_ENVIRONMENT = {"LC_TIMEZONE": "UTC"}


@pytest.fixture(scope="module")
def payloads(tmp_path_factory) -> list[bytes]:
    """The events of a job as a controller publishes them."""
    history = given(gm(condition("Train", "Waiting", "t")), ticked(), arrive(3), reported(results=[], kind="x\x1b[2J"))
    path = stored(tmp_path_factory.mktemp("store") / "events.db", history.events)
    journal = open_journal(path, Registry(LC_EVENTS))
    rows = journal.rows.rows()
    journal.close()
    return [cloud_event("edge1", row, before) for row, before in zip(rows, ["", *(r.hash for r in rows)], strict=False)]


class Tail:
    """`lc-events tail` that has begun to listen."""

    def __init__(self, folder, port, root, *arguments):
        self.environment = {"LC_MQTT_URL": f"mqtt://127.0.0.1:{port}", "LC_TOPIC_ROOT": root, **ROOT_ENVIRONMENT}
        self.program = Program(folder, "-m", "lc_events", "tail", *arguments, environment=self.environment)
        self.topic = f"{root}/events/edge1/jobs/default/job1"
        self.tap = Tap(port)

    def __enter__(self):
        eventually(lambda: "listening" in self.program.err, what="listening")
        self.tap.start()
        return self

    def __exit__(self, *_):
        self.tap.stop()
        self.program.__exit__()

    def hears(self, *payloads, topic=None):
        for payload in payloads:
            self.tap.publish(topic or self.topic, payload)


@pytest.fixture
def tail(shared_mosquitto: Mosquitto, topic_root, tmp_path) -> Iterator:
    opened = []

    def start(*arguments):
        opened.append(Tail(tmp_path, shared_mosquitto.port, topic_root, *arguments).__enter__())
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__()


def test_each_event_is_a_line_that_says_what_happened(tail, payloads):
    running = tail()
    running.hears(*payloads)
    out = running.program.says("WorkerResultReceived")
    assert [line.split()[2:6] for line in out.splitlines()] == [
        ["edge1", "default/job1", "1", "GlobalManagerMessageReceived"],
        ["edge1", "default/job1", "2", "Ticked"],
        ["edge1", "default/job1", "3", "SamplesArrived"],
        ["edge1", "default/job1", "4", "WorkerResultReceived"],
    ]
    assert "insert, generation 1 begins, Train/Waiting" in out
    assert "3 new: 2 train, 1 evaluate; samples" in out


def test_jsonl_is_what_came_and_json_the_same_indented(tail, payloads):
    lines = tail("-o", "jsonl")
    lines.hears(*payloads[:2], payloads[2].replace(b',"data"', b',\r\n\t"data"'))
    out = eventually(lambda: (o := lines.program.out).count("\n") == 3 and o)
    assert [json.loads(line) for line in out.splitlines()] == [json.loads(payload) for payload in payloads[:3]]
    assert out.splitlines()[:2] == [payload.decode() for payload in payloads[:2]]


def test_json_is_one_indented_document_after_another(tail, payloads):
    running = tail("-o", "json")
    running.hears(*payloads[:2])
    out = running.program.says("\n}\n", times=2)
    assert [json.loads(part + "}") for part in out.split("\n}\n") if part] == [orjson.loads(p) for p in payloads[:2]]


def test_what_workers_wrote_cannot_command_the_terminal(tail, payloads):
    running = tail()
    running.hears(payloads[3])
    out = running.program.says("WorkerResultReceived")
    assert "x\\x1b[2J" in out
    assert "\x1b" not in out


def test_an_event_that_comes_again_is_shown_once_and_a_gap_is_told(tail, payloads):
    running = tail()
    running.hears(payloads[0], payloads[0], payloads[3])
    running.program.says("WorkerResultReceived")
    assert running.program.out.count("\n") == 2
    assert "edge1 default/job1: versions 2 to 3 were not heard; see `lc-events history" in running.program.err


def test_one_job_of_one_node_is_shown_alone(tail, payloads, topic_root):
    running = tail("default/job1", "--node", "edge1")
    of_another = payloads[0].replace(b"job1", b"job2")
    running.hears(of_another, topic=f"{topic_root}/events/edge1/jobs/default/job2")
    running.hears(payloads[0].replace(b"edge1", b"edge2"), topic=f"{topic_root}/events/edge2/jobs/default/job1")
    of_dataset = payloads[0].replace(b"lifelonglearningjob", b"dataset")
    running.hears(of_dataset, topic=f"{topic_root}/events/edge1/datasets/default/job1")
    running.hears(payloads[1])
    assert running.program.says("Ticked").count("\n") == 1


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x1b[2J",
        b"[]",
        b'{"source":"/sedna/edge1","subject":"default/lifelonglearningjob/job1"}',
        b'{"source":"/sedna/edge2","subject":"default/lifelonglearningjob/job1","id":"x","sequence":1,"type":"x"}',
    ],
)
def test_what_is_no_event_is_passed_over_aloud(tail, payloads, payload):
    running = tail()
    running.hears(payload, payloads[0])
    out = running.program.says("GlobalManagerMessageReceived")
    assert out.count("\n") == 1
    assert "passed over" in running.program.err
    assert "\x1b" not in running.program.err


def test_an_event_of_a_newer_version_is_shown_as_it_is(tail, payloads):
    running = tail()
    event = {**json.loads(payloads[0]), "type": "io.sedna.lc.Danced.v1", "data": {"steps": 3}}
    running.hears({**event, "id": "1"}, {**event, "id": "2", "type": "io.sedna.lc.Ticked.v1", "data": {"cause": [1]}})
    out = running.program.says("Ticked")
    assert '{"steps":3}' in out


def test_an_interrupt_ends_it_with_130_and_without_a_word(tail):
    running = tail()
    ended = running.program.interrupt()
    assert ended.code == 130
    assert ended.out == ""
    assert ended.err.count("\n") == 1


def test_a_reader_that_goes_away_ends_it_quietly(tail, payloads, tmp_path):
    running = tail()
    command = [sys.executable, "-m", "lc_events", "tail"]
    environment = {"PATH": "", **running.environment}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert b"listening" in process.stderr.readline()
        process.stdout.close()
        running.hears(payloads[0])
        said = process.stderr.read()
        assert process.wait(20) == 1
    assert said == b""


def test_it_comes_back_when_the_broker_does(mosquitto: Mosquitto, topic_root, tmp_path, payloads):
    with Tail(tmp_path, mosquitto.port, topic_root) as tail:
        tail.hears(payloads[0])
        tail.program.says("GlobalManagerMessageReceived")
        tail.tap.stop()
        mosquitto.restart()
        eventually(lambda: "connected again" in tail.program.err, 20)
        with Tap(mosquitto.port) as tap:
            numbers = itertools.count()

            def is_heard_again() -> bool:
                tap.publish(tail.topic, {**json.loads(payloads[3]), "id": f"{next(numbers)}"})
                return "WorkerResultReceived" in tail.program.out

            eventually(is_heard_again)


def test_without_a_broker_it_ends_with_6_in_words(tmp_path):
    environment = {"LC_MQTT_URL": "mqtt://127.0.0.1:1"}
    with Program(tmp_path, "-m", "lc_events", "tail", environment=environment) as program:
        ended = program.ended()
    assert ended.code == 6
    assert ended.err == ("lc-events: no connection to mqtt://127.0.0.1:1: connection refused: is the broker running?\n")
