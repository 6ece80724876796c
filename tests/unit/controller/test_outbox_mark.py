from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import orjson
import pytest

from lc_events.controller.outbox_mark import OutboxMark
from lc_events.errors import BrokerError

TOPIC = "sedna/state/edge1/outbox"


class StandingClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


def at_a_broker_with(payload: bytes | None) -> OutboxMark:
    return OutboxMark(TOPIC, StandingClock(), {TOPIC: payload}.get)


def refusing(code: str) -> OutboxMark:
    def look(_topic: str) -> bytes:
        raise BrokerError("no", code=code)

    return OutboxMark(TOPIC, StandingClock(), look)


def test_where_nothing_outlives_the_broker_what_it_confirmed_counts():
    assert OutboxMark(TOPIC, StandingClock()).begin(70, end=90) == 70


def test_a_broker_that_was_set_back_is_told_again_what_it_lost():
    assert at_a_broker_with(b'{"position": 64}').begin(70, end=90) == 64


def test_a_mark_ahead_of_the_position_changes_nothing():
    assert at_a_broker_with(b'{"position": 75}').begin(70, end=90) == 70


@pytest.mark.parametrize(
    "payload",
    [
        *(None, b"", b"nonsense", b"[]", b"{}", b'{"position": "7"}', b'{"position": -1}', b'{"position": true}'),
        *(b'{"position": 100001}', b'{"position": 9223372036854775807}', b'{"position": 64.0}'),
    ],
)
def test_a_broker_without_a_mark_of_this_log_is_told_the_newest_ten_thousand_events_again(payload):
    for position, begin in ((70, 0), (25_000, 15_000)):
        assert at_a_broker_with(payload).begin(position, end=100_000) == begin


@pytest.mark.parametrize("code", ["denied", "no_answer"])
def test_a_broker_that_does_not_let_us_look_is_taken_to_have_what_it_confirmed(code):
    assert refusing(code).begin(70, end=90) == 70


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("denied", f"events that this broker loses stay lost, for {TOPIC} is withheld: no"),
        ("no_answer", f"events that this broker loses stay lost, for {TOPIC} is withheld: no"),
        ("broker", "the broker cannot be asked how far it has the log: no"),
    ],
)
def test_that_it_cannot_look_is_said_once_until_it_can_again(code, words, caplog):
    failure = BrokerError("no", code=code)
    answers = iter([failure, failure, b'{"position": 64}', failure])

    def look(_topic: str) -> bytes:
        answer = next(answers)
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    ours = OutboxMark(TOPIC, StandingClock(), look)
    said = []
    for _ in range(4):
        with suppress(BrokerError):
            ours.begin(70, end=90)
        said.append(len(caplog.records))
    assert said == [1, 1, 1, 2]
    assert [record.getMessage() for record in caplog.records] == [words] * 2


def test_one_that_is_gone_again_is_asked_on_the_next_connection():
    with pytest.raises(BrokerError):
        refusing("broker").begin(70, end=90)


@pytest.mark.parametrize("reason", [0x87, 0x90, 0x9A])
def test_where_no_mark_may_be_left_none_counts_and_none_is_due(reason):
    ours = at_a_broker_with(b'{"position": 64}')
    ours.refused(reason)
    assert ours.begin(70, end=90) == 70
    assert ours.due_in(80, 0.0) is None


@pytest.mark.parametrize("reason", [0x80, 0x83, 0x91, 0x95, 0x97, 0x99])
def test_a_mark_that_was_refused_for_what_may_pass_comes_again_with_the_next_position(reason):
    ours = at_a_broker_with(b'{"position": 64}')
    ours.begin(70, end=90)
    ours.take_due(80, 0.0)
    ours.refused(reason)
    assert ours.due_in(81, 0.0) == 1.0
    assert ours.begin(70, end=90) == 64


def test_one_that_never_takes_a_mark_stays_one_whatever_it_says_later():
    ours = at_a_broker_with(b'{"position": 64}')
    ours.refused(0x87)
    ours.refused(0x97)
    assert ours.begin(70, end=90) == 70


def test_it_is_published_retained_once_a_second_and_not_if_it_is_there():
    clock = StandingClock()
    ours = OutboxMark(TOPIC, clock, {TOPIC: b'{"position": 5}'}.get)
    ours.begin(5, end=5)
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
