from __future__ import annotations

import pytest
from support.gm import Manager, controller_says, job_manifest, model, template, train_input, worker_says

from lc_events.gm import decisions
from lc_events.gm.views import condition_rows, job_view, waits_for


def test_a_view_shows_where_the_job_stands_and_what_is_unsettled(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template("edge2")))
    manager.report(controller_says("Train", "Ready", train_input(3)))
    view = job_view(manager.job)
    assert (view["stage"], view["type"], view["round"], view["node"]) == ("Train", "Starting", 3, "edge1")
    assert manager.job.order is not None
    order = manager.job.order
    assert view["nodes"] == {
        "edge1": {"operation": "insert", "version": 3, "state": "unconfirmed"},
        "edge2": {"operation": "insert", "version": 6, "state": "unconfirmed"},
    }
    assert view["unconfirmed"] == [
        {"what": "insert", "node": "edge1", "version": 3},
        {"what": "insert", "node": "edge2", "version": 6},
        {"what": "order", "node": "edge2", "id": order.id, "time": manager.clock},
    ]
    assert [work["worker"] for work in view["work"]] == [order.worker]  # type: ignore[union-attr,index,call-overload]


def test_it_is_said_whom_a_job_waits_for(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template("edge2")), node=None)
    assert waits_for(manager.job) == "dataset default/ds, which was not applied yet"
    manager.link("edge1")
    assert waits_for(manager.job) == "the local controller of edge1, which has not shown yet that it knows"
    manager.confirm()
    assert waits_for(manager.job) == "the local controller of edge1"
    manager.report(controller_says("Train", "Ready", train_input()))
    assert waits_for(manager.job) == "the agent of edge2, which has not answered its work order yet"
    manager.report(worker_says("train", "running"), "edge2")
    assert manager.job.order is not None
    assert waits_for(manager.job) == f"{manager.job.order.worker} on edge2"
    manager.delete()
    assert waits_for(manager.job) is None


def test_a_refused_manifest_is_said_to_be(manager: Manager) -> None:
    manager.apply()
    version = manager.job.deliveries["edge1"].version
    refused = decisions.refuse_delivery(
        manager.job, "edge1", version, code="conflict", error="taken", now=manager.clock
    )[1]
    assert waits_for(refused) == "another manifest: node edge1 refused this one: taken"
    assert job_view(refused)["last_error"] == {
        "node": "edge1",
        "code": "conflict",
        "error": "taken",
        "time": manager.clock,
    }


@pytest.mark.parametrize("failed", [False, True])
def test_conditions_are_lines_of_a_table(manager: Manager, failed: bool) -> None:
    manager.apply()
    if failed:
        manager.report(controller_says("Train", "Ready", train_input()))
        manager.report(worker_says("train", "failed", owner_info={"error": "no memory"}))
    else:
        manager.train()
    rows = condition_rows(job_view(manager.job))
    assert rows[1][1:] == ("Train", "Ready", "/output/job1/data/train/1/data.txt")
    assert (("Train", "Failed", "no memory") if failed else ("Train", "Completed", str(model("train")["url"]))) in [
        row[1:] for row in rows
    ]
