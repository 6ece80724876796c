from __future__ import annotations

from support.gm import controller_says, eval_input, job_manifest, model, template, train_input, worker_says


def test_a_round_by_hand_with_work_orders_on_two_nodes(cloud, edge1, edge2, dataset) -> None:
    cloud.start()
    assert cloud.apply(dataset)["result"] == "created"
    job = job_manifest(trainSpec=template("edge2"), evalSpec=template(), deploySpec=template())
    assert cloud.apply(job)["nodes"] == ["edge1"]

    waiting = edge1.told("Train/Waiting")
    assert waiting.json["header"] == {
        "namespace": "default",
        "resourceKind": "lifelonglearningjob",
        "resourceName": "job1",
        "operation": "insert",
    }
    edge1.shows(waiting)
    edge1.report(controller_says("Train", "Ready", train_input()))
    starting, order = edge2.told("Train/Starting"), edge2.order("Train")
    assert starting.order < order.order, "an LC that does not know the job could not pass its worker's report on"
    assert order.json["env"]["TRAIN_DATASET_URL"] == "/output/job1/data/train/1/data.txt"
    assert order.topic.rsplit("/", 1)[1].startswith("train-worker-")
    owner = {"order": order.json["id"], "round": 1}
    edge2.report(worker_says("train", "running", owner_info=owner))
    edge2.told("Train/Running")
    done = edge2.report(worker_says("train", "completed", [model("train")], owner))
    taken_back = edge2.deleted()
    acknowledged = cloud.tap.wait_for(lambda m: m.topic == cloud.topics.down_ack("edge2") and done in m.json["ids"])
    assert acknowledged.order < taken_back.order, "a job is taken back only after its result is confirmed"

    edge1.shows(edge1.told("Eval/Waiting"))
    edge1.report(controller_says("Eval", "Ready", eval_input()))
    owner = {"order": edge1.order("Eval").json["id"]}
    edge1.report(worker_says("eval", "completed", [model("eval")], owner))
    edge1.told("Deploy/Waiting")
    edge1.report(controller_says("Deploy", "Ready", {"models": [model("eval")]}))
    owner = {"order": edge1.order("Deploy").json["id"]}
    edge1.report(worker_says("deploy", "running", owner_info=owner))
    edge1.told("Train/Waiting", count=2)

    shown = cloud.show()
    assert [f"{c['stage']}/{c['type']}" for c in shown["conditions"]] == [
        *("Train/Waiting", "Train/Ready", "Train/Starting", "Train/Running", "Train/Completed"),
        *("Eval/Waiting", "Eval/Ready", "Eval/Starting", "Eval/Completed"),
        *("Deploy/Waiting", "Deploy/Ready", "Deploy/Starting", "Deploy/Running", "Deploy/Completed"),
        "Train/Waiting",
    ]
    assert shown["round"] == 1
    assert [work["stage"] for work in shown["work"]] == ["Deploy"]
    assert shown["last_error"] is None


def test_every_message_carries_the_id_of_the_event_that_caused_it(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    answer = cloud.apply(job_manifest())
    message = edge1.told("Train/Waiting").json
    stream, _, version = message["id"].partition("gm/")[2].rpartition("/")
    assert stream == "default/lifelonglearningjob/job1"
    assert int(version.partition("-")[0]) == answer["version"] == cloud.show()["version"]


def test_a_job_may_be_applied_before_its_dataset(cloud, edge1, dataset) -> None:
    cloud.start()
    answer = cloud.apply(job_manifest())
    assert answer["nodes"] == []
    assert answer["note"] == "waits for dataset default/ds, which is not here yet"
    cloud.apply(dataset)
    edge1.told("Train/Waiting")
    assert cloud.show()["node"] == "edge1"


def test_a_count_of_samples_is_recorded_and_confirmed(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    edge1.send("Dataset", "ds", {"numberOfSamples": 12}, "edge1/default/dataset/ds/2-0123456789ab")
    edge1.confirmed("edge1/default/dataset/ds/2-0123456789ab")
    cloud.apply(dataset)
    newest = cloud.tap.wait_for_count(2, lambda m: m.topic == cloud.topics.down("edge1", "dataset", "default", "ds"))[
        -1
    ]
    assert newest.json["content"]["status"]["numberOfSamples"] == 12


def test_a_report_that_comes_again_is_confirmed_again_and_counted_once(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    report = edge1.report(controller_says("Train", "Ready", train_input()))
    edge1.report(controller_says("Train", "Ready", train_input()), report)
    edge1.confirmed(report, times=2)
    shown = cloud.show()
    assert [c["type"] for c in shown["conditions"]] == ["Waiting", "Ready", "Starting"]
    assert shown["counts"] == {"reports": 1, "duplicates": 1}


def test_a_late_report_is_confirmed_and_moves_nothing(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    edge1.report(worker_says("eval", "completed", [model("eval")]))
    assert [c["type"] for c in cloud.show()["conditions"]] == ["Waiting"]


def test_a_report_without_an_id_is_a_repeat_if_it_equals_the_last(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    header = {
        "namespace": "default",
        "resourceKind": "LifelongLearningJob",
        "resourceName": "job1",
        "operation": "status",
    }
    topic = cloud.topics.up("edge1", "lifelonglearningjob", "default", "job1")
    message = {"header": header, "content": controller_says("Train", "Ready", train_input())}
    cloud.tap.publish_all([(topic, message), (topic, message)])
    edge1.report(worker_says("train", "running"))
    shown = cloud.show()
    assert shown["type"] == "Running"
    assert shown["counts"] == {"reports": 2, "duplicates": 1}


def test_a_report_on_what_was_never_applied_is_not_confirmed_and_the_log_says_what_to_do(
    cloud, edge1, dataset, caplog
) -> None:
    cloud.start()
    cloud.apply(dataset)
    stranger = edge1.report(controller_says("Train", "Ready", train_input()), wait=False)
    edge1.send("Dataset", "ds", {"numberOfSamples": 1}, "after")
    edge1.confirmed("after")
    assert not any(stranger in m.json["ids"] for m in cloud.tap.of(cloud.topics.down_ack("edge1")))
    assert (
        "which this global manager does not know. If its store was lost, restore a copy of GM_STATE_DIR" in caplog.text
    )


def test_nonsense_harms_nobody(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    job = cloud.topics.up("edge1", "lifelonglearningjob", "default", "job1")
    state = f"{cloud.root}/state/edge1/jobs/default/job1"
    cloud.tap.publish_all(
        [
            (job, b"\xff\xfe"),
            (job, b"[]"),
            (job, {"id": 3}),
            (job, {"id": "x", "header": {"resourceKind": "Dataset", "resourceName": "ds", "operation": "status"}}),
            (f"{cloud.root}/up/edge1/secret/default/x", {}),
            (f"{cloud.root}/up/edge1", {}),
            (state, b"{"),
            (state, {"gm_message": 7}),
            (state, {"gm_message": "gm/default/lifelonglearningjob/job1/1-000000000000"}),
            (f"{cloud.root}/errors/edge1", b"nothing"),
            (f"{cloud.root}/errors/edge1", {"id": "gm/a/b/c/1-000000000000"}),
            (f"{cloud.root}/state/edge1/status", b"!"),
            (f"{cloud.root}/apply/r1", b"{"),
        ]
    )
    edge1.report(controller_says("Train", "Ready", train_input()))
    assert cloud.show()["type"] == "Starting"


def test_a_node_cannot_keep_out_anothers_report_by_using_its_id_first(cloud, edge1, edge2, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    taken = edge2.report(controller_says("Train", "Ready", train_input()))
    assert cloud.show()["type"] == "Waiting"
    edge1.report(controller_says("Train", "Ready", train_input()), taken)
    assert cloud.show()["type"] == "Starting"
