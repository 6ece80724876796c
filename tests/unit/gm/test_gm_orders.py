from __future__ import annotations

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

from lc_events.domain.events import Event
from lc_events.gm.events import WorkCancelled, WorkOrdered
from lc_events.messages.worker import WorkOrder


def ordered(events: list[Event]) -> WorkOrdered:
    (found,) = [event for event in events if isinstance(event, WorkOrdered)]
    return found


def cancelled(events: list[Event]) -> list[str]:
    return [event.id for event in events if isinstance(event, WorkCancelled)]


def test_a_train_order_has_sednas_environment(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template(env=[{"name": "EPOCHS", "value": "60"}], args=["train.py"])))
    event = ordered(manager.report(controller_says("Train", "Ready", train_input())))
    order = WorkOrder.model_validate({"id": event.id, **event.order})
    assert (order.namespace, order.job, order.stage, order.round) == ("default", "job1", "Train", 1)
    assert (order.command, order.args) == (["python"], ["train.py"])
    assert order.env == {
        "EPOCHS": "60",
        "TRAIN_DATASET_URL": "/output/job1/data/train/1/data.txt",
        "ORIGINAL_DATASET_URL": "/data/ds.txt",
        "OUTPUT_URL": "/output/job1/train/1",
        "HAS_COMPLETED_INITIAL_TRAINING": "false",
    }
    assert order.output_url == "/output/job1/train/1"
    assert event.node == "edge1"
    assert event.worker.startswith("train-worker-")


def test_a_later_train_order_names_the_model_to_go_on_from(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    manager.train(1)
    manager.evaluate(1)
    manager.deploy(1)
    order = ordered(manager.report(controller_says("Train", "Ready", train_input(2)))).order
    assert order["round"] == 2
    assert order["env"]["HAS_COMPLETED_INITIAL_TRAINING"] == "true"  # type: ignore[index,call-overload]
    assert order["env"]["CLOUD_KB_INDEX"] == "/output/job1/train/1/index.pkl"  # type: ignore[index,call-overload]


def test_an_eval_order_joins_the_models(manager: Manager) -> None:
    manager.apply(job_manifest(evalSpec=template()))
    manager.train()
    given = eval_input()
    given["models"] = [{"url": "/output/job1/a"}, {"url": "/output/job1/b"}]
    order = ordered(manager.report(controller_says("Eval", "Ready", given))).order
    assert order["env"] == {
        "MODEL_URLS": "/output/job1/a;/output/job1/b",
        "TEST_DATASET_URL": "/output/job1/data/eval/1/data.txt",
        "ORIGINAL_DATASET_URL": "/data/ds.txt",
        "OUTPUT_URL": "/output/job1/eval/1",
    }


def test_an_inference_order_names_the_deployed_model(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template("edge3")))
    manager.train()
    manager.evaluate()
    event = ordered(manager.report(controller_says("Deploy", "Ready", {"models": [model("eval")]})))
    assert event.node == "edge3"
    assert event.order["env"] == {"MODEL_URLS": "/output/job1/deploy/index.pkl", "OUTPUT_URL": "/output/job1"}


def test_samples_in_object_storage_are_named_by_their_index(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    given = {**train_input(), "dataIndexURL": "s3://b/job1/data/train/1/dataIndex.txt"}
    order = ordered(manager.report(controller_says("Train", "Ready", given))).order
    assert order["env"]["ORIGINAL_DATASET_URL"] == "s3://b/job1/data/train/1/dataIndex.txt"  # type: ignore[index,call-overload]


def test_secrets_are_not_in_an_order_but_named_for_the_agent(manager: Manager) -> None:
    env = [
        {"name": "API_TOKEN", "value": "***"},
        {"name": "MODE", "value": "fast"},
        {"name": "USER", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    manager.apply(job_manifest(trainSpec=template(env=env)))
    order = ordered(manager.report(controller_says("Train", "Ready", train_input()))).order
    assert order["secret_env"] == ["API_TOKEN", "USER"]
    assert "API_TOKEN" not in order["env"]  # type: ignore[operator]
    assert order["env"]["MODE"] == "fast"  # type: ignore[index,call-overload]


def test_a_container_without_command_runs_python_as_sednas_images_do(manager: Manager) -> None:
    sedna = {"template": {"spec": {"nodeName": "edge1", "containers": [{"image": "any", "args": ["train.py"]}]}}}
    manager.apply(job_manifest(trainSpec=sedna))
    order = ordered(manager.report(controller_says("Train", "Ready", train_input()))).order
    assert (order["command"], order["args"]) == (["python"], ["train.py"])


def test_an_order_is_answered_by_any_report_on_it(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    manager.report(controller_says("Train", "Ready", train_input()))
    assert manager.job.order is not None
    assert not manager.job.order.answered
    manager.report(worker_says("train", "running", owner_info={"order": manager.job.order.id}))
    assert manager.job.order.answered


def test_a_plain_worker_that_names_no_order_answers_it_too(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.report(worker_says("train", "running"))
    assert manager.job.order is not None
    assert manager.job.order.answered


def test_a_deleted_jobs_work_is_cancelled_until_the_worker_says_that_it_ended(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    order = ordered(manager.report(controller_says("Train", "Ready", train_input())))
    manager.report(worker_says("train", "running", owner_info={"order": order.id}))
    assert cancelled(manager.delete()) == [order.id]
    assert [o.id for o in manager.job.cancelled] == [order.id]
    manager.report(worker_says("train", "failed", owner_info={"order": order.id, "error": "cancelled"}))
    assert manager.job.cancelled == ()
    assert manager.job.trouble is None


def test_a_deleted_job_stops_serving(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template()))
    manager.train()
    manager.evaluate()
    order = ordered(manager.report(controller_says("Deploy", "Ready", {"models": [model("eval")]})))
    manager.report(worker_says("deploy", "running", owner_info={"order": order.id}))
    assert cancelled(manager.delete()) == [order.id]


def test_what_has_ended_is_not_cancelled(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template()))
    manager.train()
    manager.evaluate()
    order = ordered(manager.report(controller_says("Deploy", "Ready", {"models": [model("eval")]})))
    manager.report(worker_says("deploy", "running", owner_info={"order": order.id}))
    manager.report(worker_says("deploy", "completed", owner_info={"order": order.id}))
    assert cancelled(manager.delete()) == []


def test_serving_moves_to_another_node_with_the_next_model(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template("edge3")))
    manager.train()
    manager.evaluate()
    first = ordered(manager.report(controller_says("Deploy", "Ready", {"models": [model("eval")]})))
    manager.report(worker_says("deploy", "running", owner_info={"order": first.id}), "edge3")
    manager.apply(job_manifest(deploySpec=template("edge4")))
    manager.train(2)
    manager.evaluate(2)
    events = manager.report(controller_says("Deploy", "Ready", {"models": [model("eval", 2)]}))
    assert cancelled(events) == [first.id]
    assert ordered(events).node == "edge4"
    assert manager.job.deliveries["edge3"].operation == "delete"


def test_a_job_without_a_serving_program_any_more_stops_the_old_one(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template()))
    manager.train()
    manager.evaluate()
    first = ordered(manager.report(controller_says("Deploy", "Ready", {"models": [model("eval")]})))
    manager.report(worker_says("deploy", "running", owner_info={"order": first.id}))
    manager.apply()
    manager.train(2)
    manager.evaluate(2)
    events = manager.report(controller_says("Deploy", "Ready", {"models": [model("eval", 2)]}))
    assert cancelled(events) == [first.id]
    assert manager.job.serving is None
    assert manager.moves[-1] == "Train/Waiting"


def test_without_a_container_nobody_is_ordered(manager: Manager) -> None:
    manager.apply()
    events = manager.report(controller_says("Train", "Ready", train_input()))
    assert not any(isinstance(event, WorkOrdered) for event in events)
    assert manager.moves[-1] == "Train/Starting"
