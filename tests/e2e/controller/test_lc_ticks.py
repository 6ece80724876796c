"""Ticks: every one of a waiting job is an event; nobody else is ticked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import orjson
import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, evaluated, train_ready, trained
from support.sedna import JOB, MORE_THAN_3, condition, dataset_resource, down_payload, job_resource
from support.tap import Tap
from support.waiting import eventually

from lc_events.application.recorder import StoredRow
from lc_events.controller.bootstrap import LocalController
from lc_events.settings.programs import LcSettings

STREAM = f"default/{JOB}/job1"
TEN = "".join(f"s{i}\n" for i in range(10))


def stored(lc: ControllerProcess, stream: str = STREAM) -> list[StoredRow]:
    with lc.journal() as journal:
        return journal.rows.rows(stream=stream)


def ticks(lc: ControllerProcess, stream: str = STREAM) -> list[dict]:
    """What each tick stored."""
    return [orjson.loads(row.state) for row in stored(lc, stream) if row.name == "Ticked"]


@pytest.fixture
def ticking(shared_mosquitto, topic_root, tmp_path) -> Iterator[ControllerProcess]:
    """A controller that ticks five times a second, whatever a trigger says."""
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, tick_seconds=0.2) as controller:
        yield controller


def test_every_tick_of_a_waiting_job_is_an_event(ticking):
    ticking.write("/data/ds.txt", "s0\n")
    gm = PlayedGm(ticking)
    gm.dataset()
    gm.job()
    state = eventually(lambda: (s := ticking.job()) and s["counts"]["ticks"] >= 5 and s)
    assert state["verdict"]["reason"] in ("samples", "no_samples")
    found = ticks(ticking)
    assert {tick["cause"] for tick in found} == {"period"}
    assert len(found) >= state["counts"]["ticks"]
    assert [tick.get("samples", 0) for tick in found] == [0] * len(found)


def test_an_idle_tick_takes_at_most_120_bytes(ticking):
    ticking.write("/data/ds.txt", "".join(f"s{i}\n" for i in range(4)))
    gm = PlayedGm(ticking)
    gm.dataset()
    gm.job()
    eventually(lambda: (s := ticking.job()) and s["counts"]["ticks"] >= 3 and s["verdict"]["reason"] == "samples")
    sizes = {len(row.state) for row in stored(ticking) if row.name == "Ticked"}
    assert max(sizes) <= 120, sizes


def test_a_job_that_waits_for_gm_or_runs_is_not_ticked(ticking):
    ticking.write("/data/ds.txt", TEN)
    gm = PlayedGm(ticking)
    gm.dataset()
    gm.job()
    gm.job("beside", trigger={"condition": {"operator": ">", "threshold": 1000, "metric": "num_of_samples"}})
    gm.expect({"numberOfSamples": 10}, train_ready(1))

    def passes_ticks() -> None:
        before, beside = len(ticks(ticking)), len(ticks(ticking, f"default/{JOB}/beside"))
        eventually(lambda: len(ticks(ticking, f"default/{JOB}/beside")) >= beside + 3)
        assert len(ticks(ticking)) == before

    passes_ticks()  # reported, GM silent
    gm.move(condition("Train", "Ready", "2024-01-01T00:00:01Z"), condition("Train", "Running", "2024-01-01T00:00:02Z"))
    eventually(lambda: ticking.job()["type"] == "Running")
    passes_ticks()
    gm.delete()
    eventually(lambda: ticking.tap.of(ticking.topic("state/{node}/jobs/default/job1"))[-1].payload == b"")
    passes_ticks()


def test_a_job_without_a_model_to_evaluate_or_deploy_is_ticked_too(ticking):
    ticking.write("/data/ds.txt", TEN)
    gm = PlayedGm(ticking)
    gm.dataset()
    gm.job("job1", condition("Eval", "Waiting", "2024-01-01T00:00:00Z"))
    state = eventually(lambda: (s := ticking.job()) and s["counts"]["ticks"] >= 3 and s)
    assert (state["verdict"]["stage"], state["verdict"]["reason"]) == ("Eval", "no_model")
    assert gm.expect({"numberOfSamples": 10})
    assert len(gm.up) == 1


def test_each_job_has_the_period_of_its_trigger(shared_mosquitto, topic_root, tmp_path):
    often, rarely = ({**MORE_THAN_3, "checkPeriodSeconds": seconds} for seconds in (1, 3600))
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, tick_seconds=None) as lc:
        gm = PlayedGm(lc)
        gm.job("often", trigger=often)
        gm.job("rarely", trigger=rarely)
        gm.job("usually")
        eventually(lambda: len(ticks(lc, f"default/{JOB}/often")) >= 3)
        times = [datetime.fromisoformat(tick["time"]) for tick in ticks(lc, f"default/{JOB}/often")]
        gaps = [after - before for before, after in pairwise(times)]
        assert min(gaps) > timedelta(seconds=0.5)
        assert ticks(lc, f"default/{JOB}/rarely") == ticks(lc, f"default/{JOB}/usually") == []


def test_an_external_tick_is_one_tick_of_every_waiting_job(lc, gm):
    gm.job("one")
    gm.job("two")
    eventually(lambda: lc.job("two"))
    lc.tap.publish(lc.topic("tick/{node}"), {})
    for name in ("one", "two"):
        assert eventually(lambda name=name: ticks(lc, f"default/{JOB}/{name}"))[0]["cause"] == "external"
        assert "as_of" not in ticks(lc, f"default/{JOB}/{name}")[0]


def test_an_external_tick_may_say_as_of_when(lc, gm):
    now = datetime.now(UTC)
    opens, closes = ((now + timedelta(hours=hours)).strftime("%H:%M") for hours in (2, 3))
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job(trigger={**MORE_THAN_3, "timer": {"start": opens, "end": closes}})
    gm.expect({"numberOfSamples": 10})
    state = eventually(lambda: (s := lc.job()) and s["verdict"] and s["verdict"]["reason"] == "window" and s)
    assert opens in state["verdict"]["detail"]
    lc.tap.publish(lc.topic("tick/{node}"), {})
    eventually(lambda: lc.job()["counts"]["ticks"] == 1)
    assert lc.job()["verdict"]["fired"] is False
    within = (now + timedelta(hours=2, minutes=30)).astimezone(UTC)
    lc.tap.publish(lc.topic("tick/{node}"), {"time": within.isoformat()})
    gm.expect(train_ready(1))
    last = ticks(lc)[-1]
    assert datetime.fromisoformat(last["as_of"]) == within
    assert datetime.fromisoformat(last["time"]) < within
    assert last["reason"] == "fired"


def test_external_ticks_beyond_ten_a_second_are_refused(lc, gm):
    gm.job()
    eventually(lc.job)
    began = time.monotonic()
    lc.tap.publish_all((lc.topic("tick/{node}"), {}) for _ in range(40))
    eventually(lambda: len(ticks(lc)) + len(lc.errors()) == 40)
    assert 10 <= len(ticks(lc)) <= 10 + 10 * (time.monotonic() - began)
    assert {error["code"] for error in lc.errors()} == {"rate"}


def test_with_decisive_ticks_those_that_change_nothing_are_only_counted(shared_mosquitto, topic_root, tmp_path):
    now = datetime.now(UTC)
    window = {"start": f"{now + timedelta(hours=2):%H:%M}", "end": f"{now + timedelta(hours=3):%H:%M}"}
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, ticks="decisive") as lc:
        gm = PlayedGm(lc)
        lc.write("/data/ds.txt", TEN)
        gm.dataset()
        gm.job(trigger={**MORE_THAN_3, "timer": window})
        gm.expect({"numberOfSamples": 10})
        eventually(lambda: (s := lc.job()) and s["verdict"] and s["verdict"]["reason"] == "window")
        lc.tap.publish_all((lc.topic("tick/{node}"), {}) for _ in range(3))
        gm.result(status="running")
        gm.next_up()
        assert ticks(lc) == []
        lc.tap.publish(lc.topic("tick/{node}"), {"time": (now + timedelta(hours=2, minutes=30)).isoformat()})
        gm.expect(train_ready(1))
        assert [(tick["reason"], tick["count"]) for tick in ticks(lc)] == [("fired", 4)]
        assert eventually(lambda: lc.job()["counts"]["ticks"] == 4)


@pytest.mark.parametrize("kill", [False, True])
def test_a_waiting_job_is_looked_at_after_a_restart(lc, gm, kill):
    gm.job()
    eventually(lc.job)
    lc.restart(kill=kill)
    assert [tick["cause"] for tick in eventually(lambda: ticks(lc))] == ["restart"]


def test_a_reported_stage_is_not_ticked_after_a_restart(lc, gm):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 10}, train_ready(1))
    gm.move(*trained(1))
    gm.next_up()
    lc.write("/output/job1/eval/1/index.pkl", "m")
    gm.move(*evaluated(1))
    gm.next_up()
    lc.restart()
    lc.tap.publish(lc.topic("tick/{node}"), {})
    gm.result(status="running")
    gm.next_up()
    assert ticks(lc) == []


class ShiftedClock:
    """The machine's clock, with another time of day."""

    def __init__(self, now: datetime) -> None:
        self._shift = now - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._shift

    def monotonic(self) -> float:
        return time.monotonic()


@contextmanager
def running(controller: LocalController) -> Iterator[None]:
    thread = threading.Thread(target=controller.run)
    thread.start()
    try:
        yield
    finally:
        controller.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_a_window_that_opens_is_not_missed_between_two_ticks(shared_mosquitto, topic_root, tmp_path):
    node = "edge1"
    settings = LcSettings(
        node=node,
        mqtt_url=shared_mosquitto.url,
        mqtt_client_id=topic_root,
        topic_root=topic_root,
        state_dir=tmp_path / "state",
        root=tmp_path / "root",
        timezone="Europe/Berlin",
        tick_seconds=3600,
    )
    data = tmp_path / "root" / "data" / "ds.txt"
    data.parent.mkdir(parents=True)
    data.write_text(TEN)
    clock = ShiftedClock(datetime(2026, 7, 1, 6, 59, 58, tzinfo=UTC))
    resource = job_resource(
        condition("Train", "Waiting"), trigger={**MORE_THAN_3, "timer": {"start": "09:00", "end": "10:00"}}
    )
    with Tap(shared_mosquitto.port, f"{topic_root}/#") as tap, running(LocalController(settings, clock)):
        tap.wait_for_topic(f"{topic_root}/state/{node}/status")
        tap.publish(
            f"{topic_root}/down/{node}/dataset/default/ds", down_payload(dataset_resource(), kind="dataset", name="ds")
        )
        tap.publish(f"{topic_root}/down/{node}/{JOB}/default/job1", down_payload(resource))
        tap.wait_for(lambda m: m.topic.endswith("jobs/default/job1") and b'"reason":"window"' in m.payload)
        ready = tap.wait_for_topic(f"{topic_root}/up/{node}/{JOB}/default/job1")
        assert ready.json["content"] == train_ready(1)
        events = [m.json for m in tap.of(f"{topic_root}/events/{node}/jobs/default/job1")]
    ticked = [event["data"] for event in events if "Ticked" in event["type"]]
    assert [tick["cause"] for tick in ticked] == ["window"]
    assert ticked[0]["time"] >= "2026-07-01T07:00:00"
