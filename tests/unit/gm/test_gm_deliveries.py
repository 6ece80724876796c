from __future__ import annotations

from support.gm import (
    Manager,
    controller_says,
    dataset_manifest,
    job_manifest,
    model,
    template,
    train_input,
    worker_says,
)

from lc_events.domain.events import Event
from lc_events.gm import decisions
from lc_events.gm.dataset import GmDataset, fold_dataset
from lc_events.gm.decisions import Facts
from lc_events.gm.deliveries import Delivery, holders
from lc_events.gm.events import DatasetLinked, DeliveryConfirmed, DeliveryRefused


def last(manager: Manager, node: str = "edge1") -> tuple[str, str]:
    """Operation and last condition of the newest message to a node."""
    delivery = manager.job.deliveries[node]
    status = delivery.body.get("status")
    conditions = status["conditions"] if isinstance(status, dict) else []
    newest = conditions[-1] if isinstance(conditions, tuple | list) and conditions else {}
    return delivery.operation, f"{newest.get('stage')}/{newest.get('type')}" if isinstance(newest, dict) else ""


def test_a_job_goes_to_its_datasets_node_under_the_id_of_the_newest_event(manager: Manager) -> None:
    events = manager.apply()
    assert holders(manager.job.deliveries) == ["edge1"]
    assert last(manager) == ("insert", "Train/Waiting")
    assert manager.job.deliveries["edge1"].version == events[-1].originator_version


def test_a_job_without_its_dataset_goes_nowhere_until_the_dataset_is_here(manager: Manager) -> None:
    manager.apply(node=None)
    assert manager.job.deliveries == {}
    (linked,) = manager.link("edge1")
    assert isinstance(linked, DatasetLinked)
    assert last(manager) == ("insert", "Train/Waiting")
    assert manager.link("edge1") == []


def test_the_resource_is_sent_at_waiting_starting_and_running(manager: Manager) -> None:
    manager.apply()
    manager.report(controller_says("Train", "Ready", train_input()))
    assert last(manager) == ("insert", "Train/Starting")
    manager.report(worker_says("train", "running"))
    assert last(manager) == ("insert", "Train/Running")
    manager.report(worker_says("train", "completed", [model("train")]))
    assert last(manager) == ("insert", "Eval/Waiting")


def test_a_worker_on_another_node_gets_the_job_before_its_order_and_loses_it_after_its_result(
    manager: Manager,
) -> None:
    manager.apply(job_manifest(trainSpec=template("edge2")))
    waiting = manager.job.deliveries["edge1"]
    manager.report(controller_says("Train", "Ready", train_input()))
    assert last(manager, "edge2") == ("insert", "Train/Starting")
    assert manager.job.deliveries["edge1"] == waiting, "the dataset's node is told at the next Waiting"
    annotations = manager.job.deliveries["edge2"].body["metadata"]["annotations"]  # type: ignore[index,call-overload]
    assert annotations == {"sedna.io/Train": "edge2"}
    manager.report(worker_says("train", "running"), "edge2")
    assert last(manager, "edge2") == ("insert", "Train/Running")
    manager.report(worker_says("train", "completed", [model("train")]), "edge2")
    assert last(manager, "edge2")[0] == "delete"
    assert last(manager, "edge1") == ("insert", "Eval/Waiting")


def test_the_node_that_serves_keeps_the_job(manager: Manager) -> None:
    manager.apply(job_manifest(deploySpec=template("edge3")))
    manager.train()
    manager.evaluate()
    manager.deploy()
    manager.report(worker_says("deploy", "running"), "edge3")
    assert last(manager, "edge3") == ("insert", "Deploy/Running")
    manager.train(2)
    assert last(manager, "edge3") == ("insert", "Deploy/Running")


def test_a_delete_goes_to_every_node_that_has_the_job(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template("edge2")))
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.delete()
    assert {node: d.operation for node, d in manager.job.deliveries.items()} == {"edge1": "delete", "edge2": "delete"}
    metadata = manager.job.deliveries["edge2"].body["metadata"]
    assert metadata == {"name": "job1", "namespace": "default", "uid": manager.job.uid}


def test_a_new_life_takes_the_place_of_an_unconfirmed_delete(manager: Manager) -> None:
    manager.apply()
    manager.delete()
    manager.apply()
    assert last(manager) == ("insert", "Train/Waiting")
    assert not manager.job.deliveries["edge1"].settled


def test_a_changed_spec_goes_to_every_node_that_has_the_job(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template("edge2")))
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.confirm("edge1")
    manager.confirm("edge2")
    manager.apply(job_manifest(trainSpec=template("edge2"), outputDir="/output/new"))
    for node in ("edge1", "edge2"):
        delivery = manager.job.deliveries[node]
        assert not delivery.settled
        assert delivery.body["spec"]["outputDir"] == "/output/new"  # type: ignore[index,call-overload]


def test_a_dataset_that_moves_takes_its_job_along(manager: Manager) -> None:
    manager.apply()
    manager.link("edge2")
    assert last(manager, "edge1")[0] == "delete"
    assert last(manager, "edge2") == ("insert", "Train/Waiting")
    assert manager.report(controller_says("Train", "Ready", train_input()), "edge1")[0].ignored == "node"  # type: ignore[attr-defined]
    manager.report(controller_says("Train", "Ready", train_input()), "edge2")
    assert manager.moves[-1] == "Train/Starting"


def test_a_job_moves_only_after_the_worker_on_the_old_node_has_ended(manager: Manager) -> None:
    manager.apply(job_manifest(trainSpec=template()))
    manager.report(controller_says("Train", "Ready", train_input()))
    manager.link("edge2")
    assert last(manager, "edge1") == ("insert", "Train/Starting")
    manager.report(worker_says("train", "completed", [model("train")]), "edge1")
    assert last(manager, "edge1")[0] == "delete"
    assert last(manager, "edge2") == ("insert", "Eval/Waiting")


def test_a_delivery_is_confirmed_once_and_by_a_later_version_too(manager: Manager) -> None:
    manager.apply()
    version = manager.job.deliveries["edge1"].version
    assert decisions.confirm_delivery(manager.job, "edge1", version - 1, manager.clock)[0] == []
    events, job = decisions.confirm_delivery(manager.job, "edge1", version + 5, manager.clock)
    assert isinstance(events[0], DeliveryConfirmed)
    assert job.deliveries["edge1"].settled
    assert decisions.confirm_delivery(job, "edge1", version, manager.clock)[0] == []
    assert decisions.confirm_delivery(job, "edge9", version, manager.clock)[0] == []


def test_a_refusal_is_noted_until_a_newer_message_goes_out(manager: Manager) -> None:
    manager.apply()
    version = manager.job.deliveries["edge1"].version
    refused = decisions.refuse_delivery(
        manager.job, "edge1", version, code="conflict", error="taken", now=manager.clock
    )
    assert isinstance(refused[0][0], DeliveryRefused)
    refusal = refused[1].deliveries["edge1"].refusal
    assert refusal is not None
    assert (refusal.code, refusal.error) == ("conflict", "taken")
    again = decisions.apply_job(refused[1], job_manifest(), None, Facts(manager.clock, "0" * 32))[1]
    assert again.deliveries["edge1"].refusal is None
    assert not again.deliveries["edge1"].settled


def test_the_resource_carries_what_an_api_server_would_set(manager: Manager) -> None:
    given = {"labels": {"a": "b"}, "resourceVersion": "7", "annotations": {"note": "mine", "sedna.io/Train": "old"}}
    manager.apply(job_manifest(metadata=given))
    assert manager.job.deliveries["edge1"].body["metadata"] == {
        "name": "job1",
        "namespace": "default",
        "labels": {"a": "b"},
        "annotations": {"note": "mine"},
        "uid": manager.job.uid,
        "generation": 1,
        "creationTimestamp": manager.clock,
    }


def test_a_dataset_goes_to_its_node_and_moves_with_it() -> None:
    events: list[Event] = []
    state = GmDataset("default/dataset/ds")

    def keep(decision: tuple[list[Event], GmDataset]) -> GmDataset:
        events.extend(decision[0])
        assert fold_dataset(state.stream, events) == decision[1]
        return decision[1]

    facts = Facts("2026-05-09T08:00:00.000000Z", "0" * 32)
    state = keep(decisions.apply_dataset(state, dataset_manifest(), facts))
    assert holders(state.deliveries) == ["edge1"]
    state = keep(decisions.receive_sample_count(state, "edge1", "id", {"numberOfSamples": 7}, facts.now))
    state = keep(decisions.receive_sample_count(state, "edge2", "id", {"numberOfSamples": 9}, facts.now))
    assert state.samples == 7
    state = keep(decisions.apply_dataset(state, dataset_manifest(nodeName="edge2"), facts))
    assert holders(state.deliveries) == ["edge2"]
    assert state.deliveries["edge1"].operation == "delete"
    assert isinstance(state.deliveries["edge2"], Delivery)
    assert state.body()["status"] == {"numberOfSamples": 7, "updateTime": facts.now}
    state = keep(decisions.delete_resource(state, facts))
    assert holders(state.deliveries) == []
    state = keep(decisions.apply_dataset(state, dataset_manifest(), facts))
    assert (state.generation, state.samples) == (2, 0)
