from __future__ import annotations

import threading

import pytest
from support.waiting import eventually

from lc_events.controller.lanes import LOCAL, REMOTE_THREADS, Lanes


@pytest.fixture
def lanes():
    found = Lanes("test")
    yield found
    found.stop(5)


def test_a_lane_that_hangs_holds_up_no_other(lanes):
    go, done = threading.Event(), threading.Event()
    for _ in range(100):
        lanes.submit("http://slow", lambda: go.wait(10))
    lanes.submit(LOCAL, done.set)
    assert done.wait(5)
    go.set()


def test_so_many_tasks_of_a_lane_run_at_once_and_no_more(lanes):
    go, lock = threading.Event(), threading.Lock()
    at_once, most, ended = [0], [0], [0]

    def task():
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        assert go.wait(10)
        with lock:
            at_once[0] -= 1
            ended[0] += 1

    for _ in range(50):
        lanes.submit("http://slow", task)
    eventually(lambda: at_once[0] == REMOTE_THREADS)
    go.set()
    eventually(lambda: ended[0] == 50)
    assert most[0] == REMOTE_THREADS


def test_tasks_begin_in_the_order_they_came(lanes, monkeypatch):
    monkeypatch.setattr("lc_events.controller.lanes._LOCAL_THREADS", 1)
    order: list[int] = []
    for number in range(20):
        lanes.submit(LOCAL, lambda number=number: order.append(number))
    eventually(lambda: len(order) == 20)
    assert order == list(range(20))


def test_a_defect_of_a_task_ends_no_thread(lanes, caplog):
    done = threading.Event()

    def broken():
        raise ValueError("a defect")

    for _ in range(10):
        lanes.submit(LOCAL, broken)
    lanes.submit(LOCAL, done.set)
    assert done.wait(5)
    assert "a defect" in caplog.text


def test_a_stop_waits_for_what_has_begun_and_begins_nothing_more():
    lanes = Lanes("test")
    begun, go, ended, never = (threading.Event() for _ in range(4))

    def task():
        begun.set()
        assert go.wait(10)
        ended.set()

    lanes.submit("http://slow", task)
    assert begun.wait(5)
    threading.Timer(0.05, go.set).start()
    lanes.stop(10)
    assert ended.is_set()
    lanes.submit("http://slow", never.set)
    assert not any("test http" in thread.name for thread in threading.enumerate())
    assert not never.is_set()


def test_a_stop_does_not_wait_for_what_hangs(caplog):
    lanes = Lanes("effects")
    begun, go = threading.Event(), threading.Event()

    def task():
        begun.set()
        assert go.wait(10)

    lanes.submit("http://slow", task)
    assert begun.wait(5)
    lanes.stop(0.05)
    assert "not waited for any longer, to be done after the next start: effects at http://slow" in caplog.text
    go.set()


def test_threads_without_work_end_after_a_while(monkeypatch):
    monkeypatch.setattr("lc_events.controller.lanes._IDLE_SECONDS", 0.01)
    lanes = Lanes("brief")
    lanes.submit(LOCAL, lambda: None)
    eventually(lambda: not any(thread.name == "brief local" for thread in threading.enumerate()))
    done = threading.Event()
    lanes.submit(LOCAL, done.set)
    assert done.wait(5)
