from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lc_events.messages.worker import WorkOrder
from lc_events.workers.journal import Journal
from lc_events.workers.outcome import Outcome
from lc_events.workers.processes import ProcessIdentity


def test_all_of_a_run_is_there_after_a_restart(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    journal = Journal(tmp_path)
    run = journal.accept("w1", order_of(env={"A": "1"}), None)
    assert run is not None
    journal.record_process(run, ProcessIdentity(7, 8, "boot"))
    outcome = Outcome("completed", ran=True, results=[{"url": "/m", "acc": [0.5]}], owner_info={"a": None})
    journal.record_outcome(run, outcome)
    journal.record_confirmation(run, "running", None)
    journal.record_confirmation(run, "completed", "unknown")
    [again] = Journal(tmp_path).runs
    assert (again.order, again.worker, again.sequence) == (run.order, "w1", 1)
    assert (again.process, again.outcome) == (run.process, outcome)
    assert again.confirmed == {"running": None, "completed": "unknown"}


def test_a_repeated_order_is_known_also_after_a_restart(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    assert Journal(tmp_path).accept("w1", order_of(), None) is not None
    assert Journal(tmp_path).accept("w1", order_of(round=9), None) is None


def test_orders_keep_their_order(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    for number in range(12):
        Journal(tmp_path).accept(f"w{number % 5}", order_of(id=f"o-{number}"), None)
    assert [run.order.id for run in Journal(tmp_path).runs if run.order] == [f"o-{number}" for number in range(12)]


def test_a_cancel_before_its_order_is_remembered(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    Journal(tmp_path).cancel("w1", "o-1")
    run = Journal(tmp_path).accept("w1", order_of(), None)
    assert run is not None
    assert run.cancelled


@pytest.mark.parametrize("worker", ["..", ".", "a..b", "-rf", "w" * 64])
@pytest.mark.parametrize("order_id", ["../../etc/passwd", "/", "\n", "x" * 256, "ü"])
def test_no_name_leaves_the_folder(worker: str, order_id: str, tmp_path: Path, order_of: Callable[..., WorkOrder]):
    journal = Journal(tmp_path / "state")
    run = journal.accept(worker, order_of(id=order_id), None)
    assert run is not None
    assert run.folder.parent == tmp_path / "state" / "runs"
    assert (run.folder / "order.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert [again.order for again in Journal(tmp_path / "state").runs] == [run.order]


def test_an_agent_that_died_before_it_wrote_the_order_never_had_it(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    run = Journal(tmp_path).accept("w1", order_of(), None)
    assert run is not None
    (run.folder / "order.json").rename(run.folder / ".order.json.1-1.lc-part")
    journal = Journal(tmp_path)
    assert journal.runs == []
    assert journal.accept("w1", order_of(), None) is not None


def test_an_unreadable_run_does_not_stop_the_others(
    tmp_path: Path, order_of: Callable[..., WorkOrder], caplog: pytest.LogCaptureFixture
):
    journal = Journal(tmp_path)
    runs = [journal.accept("w1", order_of(id=name), None) for name in ("good", "torn", "odd")]
    assert runs[1]
    assert runs[2]
    (runs[1].folder / "order.json").write_text("{")
    (runs[2].folder / "outcome.json").write_text(json.dumps({"unknown": 1}))
    assert [run.order.id for run in Journal(tmp_path).runs if run.order] == ["good"]
    assert caplog.text.count("not readable") == 2


def test_old_runs_lose_their_files_and_then_go(tmp_path: Path, order_of: Callable[..., WorkOrder]):
    journal = Journal(tmp_path)
    for number in range(25):
        run = journal.accept("w1", order_of(id=f"o-{number}"), None)
        assert run
        run.work_folder.mkdir()
        run.output_file.write_text("x")
    journal.forget(journal.runs)
    assert [run.output_file.exists() for run in journal.runs] == [False] * 5 + [True] * 20
    assert [run.work_folder.exists() for run in Journal(tmp_path).runs] == [False] * 5 + [True] * 20
    assert journal.accept("w1", order_of(id="o-0"), None) is None
