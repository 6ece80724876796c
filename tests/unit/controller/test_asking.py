from __future__ import annotations

import json
import threading
from datetime import UTC, datetime

import pytest
from support.rounds import two_rounds
from support.stores import stored
from support.waiting import eventually

from lc_events.controller import asking as asking_module
from lc_events.controller.asking import Asking
from lc_events.mqtt.packets import Received
from lc_events.mqtt.topics import Topics

MOST = 100
"""Requests that wait."""


class Clock:
    """Seconds that pass only when the test says so, on one day."""

    seconds = 0.0

    def now(self):
        return datetime(2031, 1, 1, tzinfo=UTC)

    def monotonic(self):
        return self.seconds


class Broker:
    """Takes answers; those whose data hold a `held` field only once it is open."""

    def __init__(self):
        self.taken = []
        self.refused = []
        self.open = threading.Event()
        self.held = None
        self.holds = threading.Event()

    def publish(self, publication):
        answer = json.loads(publication.payload)
        if self.held in (answer["data"] or ()):
            self.holds.set()
            assert self.open.wait(20)
        self.taken.append(answer)

    def refuse(self, received, error):
        self.refused.append((received, error))

    def answer(self, request_id):
        return eventually(lambda: {each["request_id"]: each for each in self.taken}[request_id])


@pytest.fixture
def store(tmp_path):
    return stored(tmp_path / "events.db", two_rounds().history().events)


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def clock():
    return Clock()


def asking_of(store, broker, clock):
    return Asking(
        node="edge1",
        topics=Topics("sedna"),
        store=store,
        clock=clock,
        publish=broker.publish,
        refuse=broker.refuse,
    )


@pytest.fixture
def asking(store, broker, clock):
    asking = asking_of(store, broker, clock)
    asking.start()
    yield asking
    broker.open.set()
    asking.stop()


def offer(asking, verb, request_id, **fields):
    payload = json.dumps({"request_id": request_id, "reply_to": "me", "name": "job1", **fields}).encode()
    asking.offer(Received(f"sedna/ask/edge1/{verb}", payload, False, False, 1, 1, 1), verb)


def test_other_questions_are_answered_while_a_history_is_verified(asking, broker):
    broker.held = "ok"
    offer(asking, "verify", "long")
    assert broker.holds.wait(10)

    offer(asking, "state", "short")

    assert broker.answer("short")["data"]["name"] == "job1"
    broker.open.set()
    assert broker.answer("long")["data"]["ok"] is True


@pytest.mark.parametrize(("length", "is_repeated"), [(256, True), (257, False), (300_000, False)])
def test_an_answer_repeats_a_request_id_only_if_a_request_may_have_it(asking, broker, length, is_repeated):
    offer(asking, "state", "r" * length, limit=0)

    answer = broker.answer("r" * length if is_repeated else None)
    assert answer["error"]["code"] == "malformed"
    assert len(json.dumps(answer)) < 1000


def test_it_ends_at_once_however_many_still_wait(asking, broker, clock):
    broker.held = "events"
    offer(asking, "history", "first")
    assert broker.holds.wait(10)
    for number in range(MOST + 1):
        clock.seconds += 1
        offer(asking, "history", f"{number}")
    assert [each["error"]["code"] for each in broker.taken] == ["rate"]

    stopping = threading.Thread(target=asking.stop)
    stopping.start()
    broker.open.set()
    stopping.join(20)

    assert not stopping.is_alive()
    assert [each["request_id"] for each in broker.taken] == [f"{MOST}", "first"]


def test_who_asks_too_much_is_told_how_much_that_is(store, broker, clock, monkeypatch):
    monkeypatch.setattr(asking_module, "_WAITING", 3)
    monkeypatch.setattr(asking_module, "_PER_SECOND", 5)
    asking = asking_of(store, broker, clock)
    asking.start()
    broker.held = "events"
    offer(asking, "history", "first")
    assert broker.holds.wait(10)
    for number in range(5):
        offer(asking, "history", f"{number}")
    told = [each["error"]["message"] for each in broker.taken]
    broker.open.set()
    asking.stop()

    assert told == ["3 requests wait already: ask again later", "more than 5 requests a second: ask again later"]


def test_a_store_that_cannot_be_read_is_told_to_who_asks(asking, broker, store):
    for path in store.parent.glob("events.db-*"):
        path.unlink()
    store.write_bytes(b"no database " * 1000)

    offer(asking, "state", "r1")
    offer(asking, "verify", "r2")

    assert broker.answer("r1")["error"]["code"] == "store"
    assert broker.answer("r2")["error"]["code"] == "store"


def test_before_the_first_event_there_was_no_state_however_few_digits_the_year_has(asking, broker):
    offer(asking, "state", "r1", at_time="0999-01-01T00:00:00Z")

    assert broker.answer("r1")["error"]["code"] == "not_found"


def test_why_is_asked_as_of_the_clock_that_was_handed_in(asking, broker):
    offer(asking, "why", "r1")

    assert broker.answer("r1")["data"]["facts"]["time"] == "2031-01-01T00:00:00.000000Z"
