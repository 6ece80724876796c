from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from lc_events.controller.outbox_mark import OutboxMark

TOPIC = "sedna/state/edge1/outbox"


class StandingClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


def mark() -> OutboxMark:
    return OutboxMark(TOPIC, StandingClock())


def test_a_broker_that_nobody_asked_is_taken_to_have_what_it_confirmed():
    assert mark().begin(70) == 70


def test_a_broker_that_was_set_back_is_told_again_what_it_lost():
    ours = mark()
    ours.read({TOPIC: b'{"position": 64}'})
    assert ours.begin(70) == 64


def test_what_was_read_counts_for_one_connection():
    ours = mark()
    ours.read({TOPIC: b'{"position": 64}'})
    ours.begin(70)
    assert ours.begin(80) == 80


def test_a_mark_of_a_longer_history_than_the_stores_changes_nothing():
    ours = mark()
    ours.read({TOPIC: b'{"position": 900}'})
    assert ours.begin(70) == 70


@pytest.mark.parametrize(
    "payload", [None, b"", b"nonsense", b"[]", b"{}", b'{"position": "7"}', b'{"position": -1}', b'{"position": true}']
)
def test_a_broker_without_a_mark_is_told_the_newest_ten_thousand_events_again(payload):
    for position, begin in ((70, 0), (25_000, 15_000)):
        ours = mark()
        ours.read({} if payload is None else {TOPIC: payload})
        assert ours.begin(position) == begin


def test_it_is_published_retained_once_a_second_and_not_if_it_is_there():
    clock = StandingClock()
    ours = OutboxMark(TOPIC, clock)
    ours.read({TOPIC: b'{"position": 5}'})
    ours.begin(5)
    assert ours.due_in(5, 0.0) is None
    assert ours.take_due(5, 0.0) is None
    first = ours.take_due(6, 0.0)
    assert (first.topic, first.retain) == (TOPIC, True)
    assert orjson.loads(first.payload) == {"position": 6, "time": "1970-01-01T00:00:00.000000Z"}
    assert ours.due_in(6, 0.5) is None
    assert ours.due_in(7, 0.25) == 0.75
    assert ours.take_due(7, 0.25) is None
    clock.seconds = 1.0
    assert orjson.loads(ours.take_due(9, 1.0).payload)["position"] == 9
