from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lc_events.messages.worker import WorkOrder, read_worker
from lc_events.workers.journal import Run
from lc_events.workers.outcome import Outcome
from lc_events.workers.reports import Outbox, report_on


def run_of(worker: str = "w1", number: int = 1, outcome: Outcome | None = None) -> Run:
    order = WorkOrder(id=f"o-{number}", job="job1", stage="Train", round=number, command=["python"])
    return Run(Path(f"/runs/{worker}.{number}"), worker, number, order=order, outcome=outcome)


def test_a_report_is_a_worker_message_of_sedna():
    outcome = Outcome("completed", ran=True, results=[{"format": "pkl", "url": "/m"}], owner_info={"epochs": 3})
    report = report_on(run_of(outcome=outcome), "completed")
    message = read_worker(report.payload, worker="w1")
    assert (message.kind, message.status, message.owner_name) == ("train", "completed", "job1")
    assert message.results == [{"format": "pkl", "url": "/m"}]
    assert message.owner_info == {"epochs": 3, "order": "o-1", "round": 1}
    assert message.id == report.id == "w1.1.completed"


def test_a_report_written_twice_is_the_same():
    outcome = Outcome("failed", ran=True, owner_info={"error": "x"})
    assert report_on(run_of(outcome=outcome), "failed").payload == report_on(run_of(outcome=outcome), "failed").payload


def test_running_does_not_tell_the_outcome():
    outcome = Outcome("completed", ran=True, results=[{"url": "/m"}], owner_info={"a": 1})
    message = json.loads(report_on(run_of(outcome=outcome), "running").payload)
    assert (message["results"], message["ownerInfo"]) == ([], {"order": "o-1", "round": 1})


def test_completed_waits_until_running_is_confirmed():
    outbox, run = Outbox(), run_of(outcome=Outcome("completed", ran=True))
    outbox.add(report_on(run, "running"))
    outbox.add(report_on(run, "completed"))
    assert [report.status for report in outbox.due(0)] == ["running"]
    outbox.confirm(run, "running")
    assert [report.status for report in outbox.due(0)] == ["completed"]


def test_running_is_old_news_once_completed_is_confirmed():
    outbox, run = Outbox(), run_of(outcome=Outcome("completed", ran=True))
    outbox.add(report_on(run, "running"))
    outbox.add(report_on(run, "completed"))
    outbox.confirm(run, "completed")
    assert outbox.due(1e9) == []
    assert len(outbox) == 0


def test_workers_do_not_wait_for_each_other():
    outbox = Outbox()
    for worker in ("w1", "w2"):
        outbox.add(report_on(run_of(worker), "running"))
    assert {report.run.worker for report in outbox.due(0)} == {"w1", "w2"}


def test_a_report_is_repeated_with_growing_pauses_up_to_a_minute():
    outbox = Outbox()
    outbox.add(report_on(run_of(), "running"))
    times = []
    for _ in range(9):
        now = outbox.next_due() or 0.0
        times.append(now)
        outbox.sent(outbox.due(now)[0], now)
    assert times == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_after_a_new_connection_everything_is_said_again_at_once():
    outbox = Outbox()
    outbox.add(report_on(run_of(), "running"))
    for now in (0.0, 1.0, 3.0):
        outbox.sent(outbox.due(now)[0], now)
    outbox.connected()
    assert len(outbox.due(0.0)) == 1


def test_a_report_that_was_never_said_is_not_taken_out():
    outbox, run = Outbox(), run_of()
    outbox.confirm(run, "running")
    outbox.add(report_on(run, "running"))
    outbox.confirm(run, "completed")
    outbox.confirm(run_of(number=2), "running")
    outbox.drop(run_of("w2"))
    assert len(outbox) == 1


def test_nothing_is_due_when_all_is_confirmed():
    assert Outbox().next_due() is None


@given(st.lists(st.sampled_from(["add", "send", "confirm", "connect"]), max_size=60))
def test_of_one_worker_reports_are_confirmed_in_the_order_in_which_they_were_said(steps: list[str]):
    outbox, now, added, heard, runs = Outbox(), 0.0, 0, [], []
    for step in steps:
        now += 1.0
        if step == "add":
            added += 1
            runs.append(run_of(number=added))
            outbox.add(report_on(runs[-1], "running"))
        elif step == "send":
            for report in outbox.due(now):
                outbox.sent(report, now)
                heard.append(report.run.sequence)
        elif step == "confirm" and heard:
            outbox.confirm(runs[heard[-1] - 1], "running")
        elif step == "connect":
            outbox.connected()
    assert heard == sorted(heard)
