from __future__ import annotations

import pytest
from support.gm import (
    Manager,
    controller_says,
    eval_input,
    job_manifest,
    model,
    template,
    train_input,
    worker_says,
)

from lc_events.gm.events import ConditionAppended, ReportReceived, ResourceApplied


def test_a_new_job_waits_for_training_and_is_given_a_uid(manager: Manager) -> None:
    manager.apply()
    assert manager.moves == ["Train/Waiting"]
    assert manager.job.uid == "00000000-0000-0000-0000-000000000001"
    assert manager.job.generation == 1


def test_a_round_passes_the_stages_as_under_sednas_global_manager(manager: Manager) -> None:
    manager.apply()
    manager.train()
    manager.evaluate()
    manager.deploy()
    assert manager.moves == [
        *("Train/Waiting", "Train/Ready", "Train/Starting", "Train/Running", "Train/Completed"),
        *("Eval/Waiting", "Eval/Ready", "Eval/Starting", "Eval/Running", "Eval/Completed"),
        *("Deploy/Waiting", "Deploy/Ready", "Deploy/Completed", "Train/Waiting"),
    ]


def test_ready_keeps_the_input_and_completed_the_output_with_classes_even_when_null(manager: Manager) -> None:
    manager.apply()
    manager.train()
    assert manager.data(1) == {"input": train_input()}
    assert manager.data(4) == {"output": {"models": [{**model("train"), "classes": None}]}}
    assert "data" not in manager.job.conditions[0]


def test_completed_may_come_without_running(manager: Manager) -> None:
    manager.apply()
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.report(worker_says("train", "completed", [model("train")]))
    assert manager.moves[-3:] == ["Train/Starting", "Train/Completed", "Eval/Waiting"]


@pytest.mark.parametrize("stage", ["Train", "Eval"])
def test_a_failed_stage_goes_back_to_training(manager: Manager, stage: str) -> None:
    manager.apply()
    if stage == "Eval":
        manager.train()
        manager.report(controller_says("Eval", "Ready", eval_input()))
    else:
        manager.report(controller_says("Train", "Ready", train_input()))
    manager.report(worker_says(stage.lower(), "failed", owner_info={"error": "the program exited with 3"}))
    assert manager.moves[-2:] == [f"{stage}/Failed", "Train/Waiting"]
    assert manager.job.conditions[-2]["message"] == "the program exited with 3"
    assert manager.job.trouble is not None
    assert manager.job.trouble.error == "the program exited with 3"


def test_a_worker_that_made_no_model_has_failed(manager: Manager) -> None:
    manager.apply()
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.report(worker_says("train", "completed", []))
    assert manager.moves[-2:] == ["Train/Failed", "Train/Waiting"]
    assert manager.job.conditions[-2]["message"] == "the worker reported no model"


@pytest.mark.parametrize("status", ["Completed", "Failed"])
def test_the_controller_itself_may_end_deploying(manager: Manager, status: str) -> None:
    manager.apply()
    manager.train()
    manager.evaluate()
    manager.report(controller_says("Deploy", status))
    assert manager.moves[-2:] == [f"Deploy/{status}", "Train/Waiting"]


def test_an_inference_program_that_runs_completes_deploying(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template()))
    manager.train()
    manager.evaluate()
    manager.deploy()
    assert manager.moves[-2:] == ["Deploy/Ready", "Deploy/Starting"]
    manager.report(worker_says("deploy", "running"))
    assert manager.moves[-3:] == ["Deploy/Running", "Deploy/Completed", "Train/Waiting"]


def test_an_inference_program_that_fails_later_moves_nothing_but_is_told(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template()))
    manager.train()
    manager.evaluate()
    manager.deploy()
    manager.report(worker_says("inference", "running"))
    (received,) = manager.report(worker_says("inference", "failed", owner_info={"error": "no camera"}))
    assert isinstance(received, ReportReceived)
    assert received.ignored == "stage"
    assert manager.job.trouble is not None
    assert manager.job.trouble.error == "no camera"


@pytest.mark.parametrize(
    ("content", "node", "why"),
    [
        (controller_says("Eval", "Ready", eval_input()), "edge1", "stage"),
        (controller_says("Train", "Ready", train_input()), "edge2", "node"),
        (controller_says("Train", "Ready"), "edge1", "input"),
        (controller_says("Train", "Ready", {"dataURL": "/x"}), "edge1", "input"),
        (controller_says("Train", "Completed"), "edge1", "status"),
        (controller_says("Train", "Waiting"), "edge1", "status"),
        (worker_says("train", "completed", [model("train")]), "edge1", "type"),
        (worker_says("banana", "sleeping"), "edge1", "stage"),
        (worker_says("train", "sleeping"), "edge1", "status"),
        ({"phase": 7, "status": []}, "edge1", "stage"),
    ],
)
def test_a_report_that_does_not_fit_is_recorded_and_moves_nothing(
    manager: Manager, content: dict[str, object], node: str, why: str
) -> None:
    manager.apply()
    (received,) = manager.report(content, node)
    assert isinstance(received, ReportReceived)
    assert received.ignored == why
    assert received.content == content
    assert manager.moves == ["Train/Waiting"]


def test_a_second_running_moves_nothing(manager: Manager) -> None:
    manager.apply()
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.report(worker_says("train", "running"))
    assert len(manager.report(worker_says("train", "running"))) == 1


def test_a_worker_of_another_node_cannot_move_the_job(manager: Manager) -> None:
    manager.apply()
    manager.report(controller_says("Train", "Ready", train_input()))
    (received,) = manager.report(worker_says("train", "completed", [model("train")]), "edge2")
    assert isinstance(received, ReportReceived)
    assert received.ignored == "node"


def test_a_report_of_an_earlier_order_cannot_move_the_job(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    manager.report(controller_says("Train", "Ready", train_input(1)))
    first = manager.job.order
    assert first is not None
    manager.report(worker_says("train", "failed", owner_info={"order": first.id}))
    manager.report(controller_says("Train", "Ready", train_input(2)))
    (late,) = manager.report(worker_says("train", "completed", [model("train")], {"order": first.id}))
    assert isinstance(late, ReportReceived)
    assert late.ignored == "order"
    assert manager.moves[-1] == "Train/Starting"


def test_transition_times_only_grow_even_when_the_clock_goes_back(manager: Manager) -> None:
    manager.apply()
    manager.clock = "1970-01-01T00:00:00.000000Z"
    manager.train()
    times = [str(c["lastTransitionTime"]) for c in manager.job.conditions]
    assert times == sorted(set(times))
    assert times[1] == "2026-05-09T08:00:00.000001Z"
    assert all(c["lastHeartbeatTime"] == c["lastTransitionTime"] for c in manager.job.conditions)


def test_transition_times_go_on_growing_in_the_next_life(manager: Manager) -> None:
    manager.apply()
    last = manager.job.last_transition
    manager.delete()
    manager.apply()
    assert last is not None
    assert str(manager.job.conditions[0]["lastTransitionTime"]) > last


def test_a_deleted_job_starts_a_new_life_when_applied_again(manager: Manager) -> None:
    manager.apply()
    first = manager.job.uid
    manager.train()
    manager.delete()
    (late,) = manager.report(worker_says("eval", "completed", [model("eval")]))
    assert isinstance(late, ReportReceived)
    assert late.ignored == "deleted"
    manager.apply()
    assert manager.job.generation == 2
    assert manager.job.uid != first
    assert manager.moves == ["Train/Waiting"]
    assert not manager.job.trained


def test_a_manifest_with_another_uid_is_another_object(manager: Manager) -> None:
    manager.apply(job_manifest(metadata={"uid": "u-1"}))
    assert manager.job.uid == "u-1"
    manager.train()
    manager.apply(job_manifest(metadata={"uid": "u-2"}))
    assert (manager.job.uid, manager.job.generation) == ("u-2", 2)
    assert manager.moves == ["Train/Waiting"]


def test_applying_again_changes_the_spec_and_keeps_where_the_job_stands(manager: Manager) -> None:
    manager.apply()
    manager.train()
    (applied,) = manager.apply(job_manifest(outputDir="/output/other"))
    assert isinstance(applied, ResourceApplied)
    assert applied.metadata is None
    assert manager.moves[-1] == "Eval/Waiting"
    assert manager.job.output_dir == "/output/other"
    assert manager.job.spec_generation == 2


def test_deleting_what_is_not_live_does_nothing(manager: Manager) -> None:
    assert manager.delete() == []


def test_only_one_event_is_made_for_each_condition(manager: Manager) -> None:
    manager.apply()
    manager.train()
    appended = [event for event in manager.events if isinstance(event, ConditionAppended)]
    assert len(appended) == manager.job.conditions_count == len(manager.moves)
