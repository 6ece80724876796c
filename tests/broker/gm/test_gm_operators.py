from __future__ import annotations

import json
import stat

import pytest
from support.gm import job_manifest, template
from support.waiting import eventually

from lc_events.errors import BrokerError, ConflictError, NotFoundError, RefusedError
from lc_events.gm.client import apply_resource, delete_resource
from lc_events.gm.global_manager import GlobalManager

CREDENTIAL = '{"ACCESS_KEY_ID":"AKIA7","SECRET_ACCESS_KEY":"hunter2-secret"}'


def _ask(cloud, request: dict[str, object], topic: str = "r1") -> dict[str, object]:
    count = len(cloud.tap.of(f"{cloud.root}/answer/gm/me"))
    cloud.tap.publish(f"{cloud.root}/apply/{topic}", {"reply_to": "me", **request})
    return cloud.tap.wait_for_count(count + 1, lambda m: m.topic == f"{cloud.root}/answer/gm/me")[-1].json


def test_an_answer_has_the_envelope_of_every_answer(cloud, dataset) -> None:
    cloud.start()
    assert _ask(cloud, {"request_id": "a", "operation": "insert", "resource": dataset}) == {
        "request_id": "a",
        "status": "ok",
        "error": None,
        "data": {
            "kind": "Dataset",
            "namespace": "default",
            "name": "ds",
            "result": "created",
            "generation": 1,
            "version": 1,
            "nodes": ["edge1"],
        },
    }
    refused = _ask(cloud, {"request_id": "b", "operation": "insert", "resource": {**dataset, "kind": "Secret"}})
    assert (refused["request_id"], refused["status"], refused["data"]) == ("b", "error", None)
    assert refused["error"]["code"] == "kind"  # type: ignore[index]


def test_a_request_that_comes_again_gets_the_same_answer_and_has_no_second_effect(cloud, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    request = {"request_id": "once", "operation": "delete", "resource": dataset}
    first = _ask(cloud, request)
    assert first["status"] == "ok"
    assert _ask(cloud, request) == first
    assert _ask(cloud, {**request, "request_id": "twice"})["error"]["code"] == "not_found"  # type: ignore[index]


def test_the_same_request_id_with_other_words_is_another_request(cloud, dataset) -> None:
    cloud.start()
    _ask(cloud, {"request_id": "fixed", "operation": "insert", "resource": dataset})
    moved = {**dataset, "spec": {**dataset["spec"], "nodeName": "edge2"}}
    answer = _ask(cloud, {"request_id": "fixed", "operation": "insert", "resource": moved})
    assert answer["data"]["result"] == "configured"  # type: ignore[index]


def test_applying_the_same_again_is_unchanged_but_tells_the_node_again(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    first = edge1.told("Train/Waiting")
    assert cloud.apply(job_manifest())["result"] == "unchanged"
    second = edge1.told("Train/Waiting", count=2)
    assert first.json["id"] != second.json["id"]
    assert first.json["content"] == second.json["content"]


def test_a_request_is_answered_by_mqtt_5s_own_way_too(cloud, dataset) -> None:
    cloud.start()
    topic = f"{cloud.root}/answer/gm/other"
    request = {"operation": "insert", "resource": dataset}
    cloud.tap.publish(f"{cloud.root}/apply/r7", request, response_topic=topic, correlation=b"c-1")
    answer = cloud.tap.wait_for_topic(topic)
    assert answer.correlation == b"c-1"
    assert answer.json["request_id"] == "r7"


def test_an_answer_goes_nowhere_else(cloud, dataset) -> None:
    cloud.start()
    elsewhere = f"{cloud.root}/down/edge1/lifelonglearningjob/default/job1"
    request = {"operation": "insert", "resource": dataset}
    cloud.tap.publish(f"{cloud.root}/apply/r7", request, response_topic=elsewhere)
    cloud.tap.publish(f"{cloud.root}/apply/r8", {**request, "reply_to": "a/b"})
    cloud.apply(dataset)
    cloud.tap.wait_for(lambda message: "/answer/" in message.topic)
    assert cloud.tap.of(elsewhere) == []
    assert {m.topic.rsplit("/", 1)[0] for m in cloud.tap.messages if "/answer/" in m.topic} == {
        f"{cloud.root}/answer/gm"
    }


def test_a_retained_request_is_not_carried_out(cloud, dataset) -> None:
    cloud.tap.publish(f"{cloud.root}/apply/old", {"operation": "insert", "resource": dataset}, retain=True)
    cloud.start()
    with pytest.raises(NotFoundError):
        cloud.delete("dataset", "ds")


def test_a_delete_of_what_is_not_there_is_not_found(cloud) -> None:
    cloud.start()
    with pytest.raises(NotFoundError, match="default/nothing is not here"):
        cloud.delete("ll", "nothing")


def test_a_refusal_reaches_the_operator_with_its_code(cloud) -> None:
    cloud.start()
    with pytest.raises(RefusedError, match=r"spec\.dataset\.trainProb") as refused:
        cloud.apply(job_manifest(dataset={"name": "ds", "trainProb": 2}))
    assert refused.value.code == "invalid"


def test_without_a_global_manager_the_operator_is_told_so(cloud, dataset) -> None:
    with pytest.raises(BrokerError, match="no global manager answered") as failed:
        apply_resource(cloud.mqtt, cloud.topics, dataset, timeout=0.2)
    assert failed.value.exit_code == 6
    with pytest.raises(RefusedError):
        delete_resource(cloud.mqtt, cloud.topics, "secret", "default", "x", timeout=0.2)


def test_secrets_reach_the_node_and_nothing_else(cloud, edge1, dataset) -> None:
    cloud.start_process()
    dataset["metadata"]["annotations"] = {"sedna.io/credential": CREDENTIAL}
    cloud.apply(dataset)
    job = job_manifest(
        metadata={"annotations": {"sedna.io/credential": CREDENTIAL}},
        trainSpec=template(env=[{"name": "API_TOKEN", "value": "hunter2-token"}]),
    )
    answer = cloud.apply(job)
    sent = edge1.told("Train/Waiting").json["content"]
    assert sent["metadata"]["annotations"]["sedna.io/credential"] == CREDENTIAL
    container = sent["spec"]["trainSpec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "API_TOKEN", "value": "hunter2-token"}]
    secrets = cloud.folder / "secrets.json"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert cloud.terminate() == 0
    assert "hunter2" in secrets.read_text()
    others = [path for path in cloud.folder.iterdir() if path != secrets]
    assert not any(b"hunter2" in path.read_bytes() for path in others)
    assert "hunter2" not in cloud.log
    assert "hunter2" not in json.dumps(answer)
    assert "hunter2" not in json.dumps(cloud.show())

    cloud.start_process()
    again = edge1.told("Train/Waiting", count=2)
    assert again.json["content"] == sent, "secrets survive a restart"
    cloud.delete()
    cloud.delete("dataset", "ds")
    eventually(lambda: "hunter2" not in secrets.read_text())


def test_new_secrets_replace_the_old_ones(cloud, edge1, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest(metadata={"annotations": {"sedna.io/credential": "old-secret"}}))
    edge1.told("Train/Waiting")
    renewed = job_manifest(metadata={"annotations": {"sedna.io/credential": "new-secret"}})
    assert cloud.apply(renewed)["result"] == "configured", "though no event shows the difference"
    assert cloud.apply(renewed)["result"] == "unchanged"
    newest = edge1.told("Train/Waiting", count=2)
    assert newest.json["content"]["metadata"]["annotations"]["sedna.io/credential"] == "new-secret"
    others = [path for path in cloud.folder.iterdir() if path.name != "secrets.json"]
    assert not any(b"new-secret" in path.read_bytes() for path in others)


def test_a_locked_state_folder_is_a_conflict(cloud) -> None:
    cloud.start()
    with pytest.raises(ConflictError):
        GlobalManager(cloud.folder, cloud.mqtt, topics=cloud.topics).run()
