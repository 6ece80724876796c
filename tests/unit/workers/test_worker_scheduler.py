from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lc_events.messages.worker import WorkOrder
from lc_events.workers.execution import StopReason
from lc_events.workers.journal import Journal, Run
from lc_events.workers.outcome import Outcome
from lc_events.workers.processes import ProcessIdentity
from lc_events.workers.reports import report_id_of
from lc_events.workers.scheduler import Scheduler

COMPLETED = Outcome("completed", ran=True)
FAILED = Outcome("failed", ran=True, owner_info={"error": "cancelled"})
PROCESS = ProcessIdentity(1, 2, "boot")


class FakeExecution:
    """Starts nothing; the test says how it ends."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.begun = False
        self.takes_turn = True
        self.reason: StopReason | None = None

    def start(self) -> None:
        self.begun = self.reason is None

    def stop(self, reason: StopReason) -> None:
        self.reason = self.reason or reason

    def join(self, timeout: float) -> bool:
        return timeout > 0


class Node:
    """A scheduler whose programs are told by the test when to end."""

    def __init__(self, folder: Path, concurrency: int = 2) -> None:
        self.executions: dict[str, FakeExecution] = {}
        self.scheduler = Scheduler(Journal(folder), concurrency=concurrency, execution=self._execution)

    def _execution(self, run: Run) -> FakeExecution:
        assert run.order
        self.executions[run.order.id] = FakeExecution(run)
        return self.executions[run.order.id]

    @property
    def begun(self) -> list[str]:
        return [order_id for order_id, execution in self.executions.items() if execution.begun]

    def end(self, order_id: str, outcome: Outcome | None = COMPLETED) -> None:
        self.scheduler.finished(self.executions[order_id].run, outcome)

    def said(self) -> list[str]:
        """Confirm everything, and return what was said, in order."""
        statuses = []
        while due := self.scheduler.outbox.due(float("inf")):
            statuses += [f"{report.run.worker} {report.status}" for report in due]
            for report in due:
                self.scheduler.confirmed(report.id, None)
        return statuses


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_no_more_than_the_bound_run_at_once(node: Node, order_of: Callable[..., WorkOrder]):
    for number in range(4):
        node.scheduler.accept(f"w{number}", order_of(id=f"o{number}"))
    assert node.begun == ["o0", "o1"]
    node.end("o1")
    assert node.begun == ["o0", "o1", "o2"]


def test_an_inference_program_takes_no_turn(node: Node, order_of: Callable[..., WorkOrder]):
    for number in range(3):
        node.scheduler.accept(f"d{number}", order_of(id=f"d{number}", job=f"job{number}", stage="Deploy"))
    node.scheduler.accept("w1", order_of(id="o1"))
    assert node.begun == ["d0", "d1", "d2", "o1"]


def test_a_repeated_order_has_no_effect_while_it_runs_and_after(node: Node, order_of: Callable[..., WorkOrder]):
    for _ in range(2):
        node.scheduler.accept("w1", order_of())
    node.scheduler.started(node.executions["o-1"].run, PROCESS)
    node.end("o-1")
    node.scheduler.accept("w1", order_of())
    assert node.begun == ["o-1"]
    assert node.said() == ["w1 running", "w1 completed"]


def test_two_orders_of_one_worker_run_one_after_the_other(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.accept("w1", order_of(id="a"))
    node.scheduler.accept("w1", order_of(id="b"))
    assert node.begun == ["a"]
    node.end("a")
    assert node.begun == ["a", "b"]


def test_a_newer_deploy_of_the_job_replaces_the_older_in_silence(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.accept("infer-1", order_of(id="a", stage="Deploy"))
    node.scheduler.started(node.executions["a"].run, PROCESS)
    node.scheduler.accept("infer-2", order_of(id="b", stage="Deploy", round=2))
    assert node.executions["a"].reason == "replaced"
    assert node.begun == ["a"]
    node.end("a", Outcome("replaced", ran=True))
    assert node.begun == ["a", "b"]
    assert node.said() == []


def test_a_deploy_that_still_waits_is_replaced_without_being_begun(node: Node, order_of: Callable[..., WorkOrder]):
    for order_id in ("a", "b", "c"):
        node.scheduler.accept(f"infer-{order_id}", order_of(id=order_id, stage="Deploy"))
    assert node.executions["b"].reason == "replaced"
    node.end("b", Outcome("replaced", ran=False))
    node.end("a", Outcome("replaced", ran=True))
    assert node.begun == ["a", "c"]


def test_another_job_is_not_replaced(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.accept("infer-1", order_of(id="a", stage="Deploy"))
    node.scheduler.accept("infer-2", order_of(id="b", stage="Deploy", namespace="other"))
    assert node.executions["a"].reason is None


def test_a_cancel_stops_what_runs_and_keeps_what_has_ended(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.accept("w1", order_of(id="a"))
    node.scheduler.accept("w2", order_of(id="b"))
    node.end("b")
    node.scheduler.cancel("w1", "a")
    node.scheduler.cancel("w2", "b")
    assert node.executions["a"].reason == "cancelled"
    assert node.said() == ["w2 completed"]


def test_a_cancelled_order_that_waits_is_never_begun(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    node = Node(tmp_path, concurrency=1)
    node.scheduler.accept("w1", order_of(id="a"))
    node.scheduler.accept("w2", order_of(id="b"))
    node.scheduler.cancel("w2", "b")
    node.end("b", FAILED)
    node.end("a")
    assert node.begun == ["a"]
    assert node.said() == ["w2 failed", "w1 completed"]


def test_an_order_cancelled_before_it_came_is_never_begun(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.cancel("w1", "o-1")
    node.scheduler.accept("w1", order_of())
    assert node.executions["o-1"].reason == "cancelled"
    assert node.begun == []


def test_a_cancel_of_another_worker_is_not_ours(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.accept("w1", order_of())
    node.scheduler.cancel("w2", "o-1")
    assert node.executions["o-1"].reason is None


def test_an_interrupted_run_begins_again_and_says_running_once(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    before = Node(tmp_path)
    before.scheduler.accept("w1", order_of())
    before.scheduler.started(before.executions["o-1"].run, PROCESS)
    assert before.said() == ["w1 running"]
    after = Node(tmp_path)
    after.scheduler.recover()
    assert after.begun == ["o-1"]
    assert after.executions["o-1"].run.process == PROCESS
    after.scheduler.started(after.executions["o-1"].run, PROCESS)
    after.end("o-1")
    assert after.said() == ["w1 completed"]


def test_after_a_restart_unconfirmed_reports_are_said_in_order(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    before = Node(tmp_path)
    for worker in ("w1", "w2"):
        before.scheduler.accept(worker, order_of(id=worker))
        before.scheduler.started(before.executions[worker].run, PROCESS)
        before.end(worker)
    before.scheduler.confirmed(report_id_of(before.executions["w2"].run, "running"), None)
    after = Node(tmp_path)
    after.scheduler.recover()
    assert after.begun == []
    assert sorted(after.said()) == ["w1 completed", "w1 running", "w2 completed"]
    again = Node(tmp_path)
    again.scheduler.recover()
    assert again.said() == []


def test_a_confirmation_that_comes_before_the_program_runs_again_counts(
    tmp_path: Path, order_of: Callable[..., WorkOrder]
):
    before = Node(tmp_path)
    before.scheduler.accept("w1", order_of())
    before.scheduler.started(before.executions["o-1"].run, PROCESS)
    after = Node(tmp_path)
    after.scheduler.recover()
    run = after.executions["o-1"].run
    after.scheduler.confirmed(report_id_of(run, "running"), None)
    after.scheduler.confirmed(report_id_of(run, "completed"), None)
    after.scheduler.started(run, PROCESS)
    after.end("o-1")
    assert after.said() == ["w1 completed"]


@pytest.mark.parametrize("report_id", ["", ".", "x", "w1.0123456789abcdef.completed", "completed"])
def test_a_confirmation_of_nothing_is_ignored(node: Node, order_of: Callable[..., WorkOrder], report_id: str):
    node.scheduler.accept("w1", order_of())
    node.scheduler.confirmed(report_id, None)
    node.end("o-1")
    assert node.said() == ["w1 completed"]


def test_after_a_restart_only_the_newest_deploy_begins(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    before = Node(tmp_path)
    before.scheduler.accept("infer-1", order_of(id="a", stage="Deploy"))
    before.scheduler.accept("infer-2", order_of(id="b", stage="Deploy"))
    after = Node(tmp_path)
    after.scheduler.recover()
    assert after.executions["a"].reason == "replaced"
    after.end("a", Outcome("replaced", ran=True))
    assert after.begun == ["b"]


def test_a_refused_report_is_not_repeated(node: Node, order_of: Callable[..., WorkOrder], tmp_path: Path):
    node.scheduler.accept("w1", order_of())
    node.end("o-1")
    [report] = node.scheduler.outbox.due(0)
    node.scheduler.confirmed(report.id, "invalid")
    assert node.said() == []
    after = Node(tmp_path)
    after.scheduler.recover()
    assert after.said() == []


def test_a_bad_order_is_kept_with_the_reason_and_not_begun(node: Node, order_of: Callable[..., WorkOrder]):
    node.scheduler.accept("w1", order_of(), refusal="args: not a list")
    assert node.executions["o-1"].run.refusal == "args: not a list"


def test_an_agent_that_stops_starts_nothing_more(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    node = Node(tmp_path, concurrency=1)
    node.scheduler.accept("w1", order_of(id="a"))
    node.scheduler.accept("w2", order_of(id="b"))
    node.scheduler.stop(timeout=1)
    node.end("a", None)
    assert node.executions["a"].reason == "agent stops"
    assert node.begun == ["a"]
    after = Node(tmp_path, concurrency=1)
    after.scheduler.recover()
    assert after.begun == ["a"]
