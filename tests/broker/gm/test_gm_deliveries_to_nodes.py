from __future__ import annotations

from support.gm import controller_says, job_manifest, model, template, train_input, worker_says
from support.waiting import eventually


def test_a_message_is_repeated_under_its_id_until_the_node_shows_it(cloud, edge1, dataset) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    third = edge1.told("Train/Waiting", count=3)
    assert {m.json["id"] for m in edge1.messages()} == {third.json["id"]}
    edge1.shows(third)
    eventually(lambda: not cloud.show()["unconfirmed"])
    confirmed_after = len(edge1.messages())
    count = len(edge1.messages("dataset", "ds"))
    eventually(lambda: len(edge1.messages("dataset", "ds")) > count + 3, what="the dataset is still repeated")
    assert len(edge1.messages()) <= confirmed_after + 1


def test_only_the_newest_message_is_repeated(cloud, edge1, dataset) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    edge1.told("Train/Waiting", count=2)
    answer = cloud.apply(job_manifest(outputDir="/output/new"))
    assert answer["result"] == "configured"
    before = len(edge1.messages())
    eventually(lambda: len(edge1.messages()) > before + 4)
    assert {m.json["content"]["spec"]["outputDir"] for m in edge1.messages()[before + 1 :]} == {"/output/new"}


def test_a_node_that_shows_a_later_message_has_the_earlier_ones(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    waiting = edge1.told("Train/Waiting")
    edge1.report(controller_says("Train", "Ready", train_input()))
    starting = edge1.told("Train/Starting")
    edge1.shows(waiting)
    edge1.report(worker_says("sleep", "sleeping"))
    assert cloud.show()["unconfirmed"], "an earlier message does not prove a later one"
    edge1.shows(starting)
    eventually(lambda: not cloud.show()["unconfirmed"])


def test_a_node_that_comes_back_is_told_at_once(cloud, edge1, dataset) -> None:
    cloud.start(first=300.0)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    first = edge1.told("Train/Waiting")
    edge1.born()
    again = edge1.told("Train/Waiting", count=2)
    assert again.json["id"] == first.json["id"]
    assert again.json["content"] == first.json["content"]


def test_a_node_that_went_back_behind_what_it_had_is_told_again(cloud, edge1, dataset) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    waiting = edge1.told("Train/Waiting")
    edge1.report(controller_says("Train", "Ready", train_input()))
    starting = edge1.told("Train/Starting")
    edge1.shows(starting)
    eventually(lambda: not cloud.show()["unconfirmed"])
    count = len(edge1.messages())
    edge1.shows(waiting)
    again = edge1.told("Train/Starting", count=len(_starting(edge1)) + 1)
    assert again.json["id"] == starting.json["id"]
    assert len(edge1.messages()) > count


def test_a_node_whose_store_is_new_is_told_everything_again(cloud, edge1, dataset) -> None:
    cloud.start(first=300.0)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    first, dataset_topic = edge1.told("Train/Waiting"), cloud.topics.down("edge1", "dataset", "default", "ds")
    edge1.shows(first)
    edge1.shows(cloud.tap.wait_for_topic(dataset_topic), "ds", kind="datasets")
    eventually(lambda: not cloud.show()["unconfirmed"])
    head = f"{cloud.root}/state/edge1/heads/default/job1"
    complaint = {"code": "history", "error": "the broker has seen version 9", "topic": head, "id": None}
    cloud.tap.publish(f"{cloud.root}/errors/edge1", complaint)
    assert edge1.told("Train/Waiting", count=2).json == first.json
    cloud.tap.wait_for_count(2, lambda m: m.topic == dataset_topic)


def _starting(node) -> list[object]:
    return [m for m in node.messages() if m.json["content"]["status"]["conditions"][-1]["type"] == "Starting"]


def test_a_refused_message_is_not_repeated_but_told(cloud, edge1, dataset) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    message = edge1.told("Train/Waiting")
    refusal = {"code": "conflict", "error": "outputDir belongs to job0", "id": message.json["id"], "quarantine": "q"}
    cloud.tap.publish(f"{cloud.root}/errors/edge1", refusal)
    shown = eventually(lambda: (shown := cloud.show()) and shown["last_error"] and shown)
    assert shown["last_error"]["error"] == "outputDir belongs to job0"
    assert shown["nodes"]["edge1"]["state"] == "refused"
    assert shown["unconfirmed"] == []
    before, count = len(edge1.messages()), len(edge1.messages("dataset", "ds"))
    eventually(lambda: len(edge1.messages("dataset", "ds")) > count + 3, what="the dataset is still repeated")
    assert len(edge1.messages()) <= before + 1
    cloud.apply(job_manifest(outputDir="/output/free"))
    assert edge1.told("Train/Waiting", count=before + 1).json["content"]["spec"]["outputDir"] == "/output/free"


def test_a_delete_while_a_worker_runs_takes_the_job_back_everywhere_and_stops_the_worker(
    cloud, edge1, edge2, dataset
) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest(trainSpec=template("edge2")))
    edge1.shows(edge1.told("Train/Waiting"))
    edge1.report(controller_says("Train", "Ready", train_input()))
    order = edge2.order("Train")
    owner = {"order": order.json["id"]}
    edge2.report(worker_says("train", "running", owner_info=owner))
    answer = cloud.delete()
    assert (answer["result"], set(answer["nodes"])) == ("deleted", {"edge1", "edge2"})
    first = edge1.deleted()
    assert edge1.deleted(count=2).json == first.json, "a delete is repeated too"
    edge2.cancelled(order)
    edge1.shows(None)
    edge2.deleted()
    edge2.shows(None)
    edge2.report(worker_says("train", "failed", owner_info={**owner, "error": "cancelled"}))
    shown = eventually(lambda: (shown := cloud.show()) and not shown["unconfirmed"] and shown)
    assert shown["deleted"] is True
    assert shown["last_error"] is None


def test_a_job_that_lives_on_after_its_delete_is_deleted_again(cloud, edge1, dataset) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    waiting = edge1.told("Train/Waiting")
    cloud.delete()
    edge1.deleted()
    edge1.shows(None)
    eventually(lambda: not cloud.show()["unconfirmed"])
    deletes = sum(m.json["header"]["operation"] == "delete" for m in edge1.messages())
    edge1.shows(waiting)
    edge1.deleted(count=deletes + 1)


def test_a_job_applied_again_after_a_delete_is_another_life(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    first = edge1.told("Train/Waiting").json["content"]["metadata"]["uid"]
    cloud.delete()
    assert cloud.apply(job_manifest())["generation"] == 2
    second = edge1.told("Train/Waiting", count=2).json["content"]["metadata"]["uid"]
    assert first != second


def test_a_deleted_dataset_leaves_its_job_and_gives_its_samples_to_nobody(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    edge1.told("Train/Waiting")
    cloud.delete("dataset", "ds")
    edge1.deleted("ds", "dataset")
    assert all(m.json["header"]["operation"] == "insert" for m in edge1.messages())
    assert cloud.show()["node"] == "edge1"


def test_an_order_is_repeated_until_a_worker_answers_it(cloud, edge1, dataset) -> None:
    cloud.start(first=0.1, longest=0.2)
    cloud.apply(dataset)
    cloud.apply(job_manifest(trainSpec=template()))
    edge1.report(controller_says("Train", "Ready", train_input()))
    order = edge1.order("Train", count=3)
    assert {m.payload for m in edge1.orders()} == {order.payload}
    edge1.report(worker_says("train", "completed", [model("train")], {"order": order.json["id"]}))
    assert [entry["what"] for entry in cloud.show()["unconfirmed"]] == ["insert"]
