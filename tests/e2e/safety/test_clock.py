"""A clock that is wrong, jumps, and passes through days on which the zone's clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.invariants import assert_invariants
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.reactive_gm import ReactiveGm
from support.waiting import eventually


class Clock:
    """The clock of a controller, set by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def set(self, moment: str) -> None:
        offset = (datetime.fromisoformat(moment).replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
        new = self.path.with_suffix(".new")
        new.write_text(f"{offset}")
        new.replace(self.path)


@pytest.fixture
def clock(tmp_path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def lc(shared_mosquitto, topic_root, tmp_path, clock):
    clock.set("1970-01-01T00:00:05")
    with ControllerProcess(
        tmp_path, port=shared_mosquitto.port, topic_root=topic_root, test_clock=clock.path, timezone="Europe/Berlin"
    ) as controller:
        yield controller


def windowed(gm: PlayedGm, lc: ControllerProcess, start: str, end: str) -> None:
    lc.write("/data/ds.txt", "a\nb\nc\nd\ne\n")
    gm.dataset()
    gm.expect({"numberOfSamples": 5})
    gm.job(trigger={"timer": {"start": start, "end": end}})


def verdict(lc: ControllerProcess) -> str | None:
    state = lc.job()
    return state["verdict"]["reason"] if state and state["verdict"] else None


def test_no_round_is_lost_or_doubled_by_a_clock_that_starts_in_1970_and_jumps(lc, clock):
    moments = ["2026-03-01T12:00:00", "2026-03-01T11:00:00", "2031-01-01T00:00:00", "1970-01-01T00:00:09", "2026-03-02"]
    with ReactiveGm(lc) as gm:
        lc.write("/data/ds.txt", "")
        gm.dataset("ds", "/data/ds.txt")
        gm.job("job1")
        for number, moment in enumerate(moments, start=1):
            lc.append("/data/ds.txt", "".join(f"{number}.{n}\n" for n in range(10)))
            eventually(lambda number=number: model_round(lc) == number, 15, f"round {number}")
            clock.set(moment)
        lc.restart(kill=True)
        lc.append("/data/ds.txt", "".join(f"last {n}\n" for n in range(10)))
        eventually(lambda: model_round(lc) == 6, 15, "round 6")
        assert gm.error is None
        events = assert_invariants(lc, gm.sent)["default/lifelonglearningjob/job1"]
    years = [int(event.time[:4]) for event in events]
    assert set(years) == {1970, 2026, 2031}
    assert years != sorted(years)


def model_round(lc: ControllerProcess) -> int:
    state = lc.job()
    return state["model"]["round"] if state and state["model"] and state["type"] == "Waiting" else 0


def test_a_window_opens_by_the_wall_clock_though_it_was_set_back_meanwhile(lc, gm, clock):
    clock.set("2026-01-10T09:30:00")  # 10:30 in Berlin, an hour after the window
    windowed(gm, lc, "09:00", "09:30")
    eventually(lambda: verdict(lc) == "window")
    clock.set("2026-01-10T07:00:00")
    lc.append("/data/ds.txt", "f\n")
    gm.expect({"numberOfSamples": 6})
    assert verdict(lc) == "window"
    clock.set("2026-01-10T08:00:00")
    gm.expect(train_ready(1))
    assert lc.job()["verdict"]["reason"] == "fired"


@pytest.mark.parametrize(
    ("closed", "open_"),
    [
        ("2026-10-25T00:05:00", "2026-10-25T00:15:00"),  # 02:15, summer time
        ("2026-10-25T00:45:00", "2026-10-25T01:15:00"),  # 02:15 once more, winter time
    ],
)
def test_a_window_in_the_hour_that_is_there_twice_opens_twice(lc, gm, clock, closed, open_):
    clock.set(closed)
    windowed(gm, lc, "02:10", "02:40")
    eventually(lambda: verdict(lc) == "window")
    clock.set(open_)
    gm.expect(train_ready(1))


def test_a_window_in_the_hour_that_is_not_there_does_not_open_that_day(lc, gm, clock):
    clock.set("2026-03-29T00:55:00")  # 01:55 in Berlin; 02:00 is 03:00
    windowed(gm, lc, "02:10", "02:40")
    eventually(lambda: verdict(lc) == "window")
    clock.set("2026-03-29T01:15:00")
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"] == 1)
    assert verdict(lc) == "window"
    clock.set("2026-03-30T00:15:00")  # 02:15 the day after
    gm.expect(train_ready(1))
