"""Bad input is refused at the door: with a reason, kept in quarantine, and without harm to anything else."""

from __future__ import annotations

import base64
import copy
import json

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.sedna import JOB, condition, dataset_resource, down_payload, job_resource
from support.waiting import eventually

WAITING = condition("Train", "Waiting", "2024-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def lc(shared_mosquitto, tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    with ControllerProcess(folder, port=shared_mosquitto.port, topic_root=folder.name) as controller:
        controller.write("/data/ds.txt", "".join(f"s{i}\n" for i in range(10)))
        player = PlayedGm(controller)
        player.dataset()
        player.job("good")
        player.expect({"numberOfSamples": 10}, train_ready(1, "good"))
        eventually(lambda: (s := controller.job("good")) and s["version"] == 5)
        yield controller


def bad(name: str, path: str, value: object) -> dict:
    """A job with one thing wrong: `path` are keys with dots, the value None takes the last one out."""
    resource = copy.deepcopy(job_resource(WAITING, name=name, output_dir=f"/output/{name}"))
    *parents, last = path.split(".")
    place = resource
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return resource


INVALID = {
    "trainProb 2": ("spec.dataset.trainProb", 2, "trainProb"),
    "trainProb below 0": ("spec.dataset.trainProb", -0.1, "trainProb"),
    "trainProb a word": ("spec.dataset.trainProb", "half", "trainProb"),
    "no dataset": ("spec.dataset", None, "dataset"),
    "a bracket in the metric": ("spec.trainSpec.trigger.condition.metric", "num_of_samples[", "bracket"),
    "an unknown operator": ("spec.trainSpec.trigger.condition.operator", "~", "operator"),
    "a threshold that is no number": ("spec.trainSpec.trigger.condition.threshold", "many", "threshold"),
    "a window of 25 hours": ("spec.trainSpec.trigger.timer", {"start": "01:00", "end": "25:00"}, "timer"),
    "outputDir above the root": ("spec.outputDir", "/../..", "outputDir"),
    "outputDir of another scheme": ("spec.outputDir", "http://bad/out", "outputDir"),
    "a relative outputDir": ("spec.outputDir", "output/job", "outputDir"),
    "an empty outputDir": ("spec.outputDir", "", "outputDir"),
    "no outputDir": ("spec.outputDir", None, "outputDir"),
    "no spec": ("spec", None, "spec"),
}


@pytest.mark.parametrize("case", INVALID)
def test_a_resource_that_breaks_a_rule_is_refused_and_its_name_stays_usable(lc, gm, case):
    path, value, word = INVALID[case]
    name = f"bad-{list(INVALID).index(case)}"
    payload = down_payload(bad(name, path, value), name=name, message_id=f"id-{name}")
    error = refused(lc, f"down/{{node}}/{JOB}/default/{name}", payload)
    assert (error["code"], error["id"]) == ("invalid", f"id-{name}")
    assert word in error["error"]
    assert lc.job(name) is None
    gm.job(name)
    report = lc.tap.wait_for_topic(lc.topic(f"up/{{node}}/{JOB}/default/{name}"))
    assert report.json["content"] == train_ready(1, name)


GOOD = job_resource(WAITING, name="x", output_dir="/output/x")
MALFORMED = {
    "no JSON": b"this is not json",
    "nothing": b"",
    "a list": b"[]",
    "a number": b"7",
    "not UTF-8": b'{"header":"\xff"}',
    "garbage behind": down_payload(GOOD, name="x") + b"xyz",
    "no header": json.dumps({"content": GOOD}).encode(),
    "header a word": json.dumps({"header": "insert", "content": GOOD}).encode(),
    "content no base64": down_payload("!!", name="x"),
    "content base64 of no JSON": down_payload(base64.b64encode(b"{nojson").decode(), name="x"),
    "NaN": down_payload(GOOD, name="x").replace(b"0.8", b"NaN"),
    "an infinite number": down_payload(GOOD, name="x").replace(b"0.8", b"1e999"),
    "an integer beyond 64 bits": down_payload(GOOD, name="x").replace(
        b'"threshold":3', b'"threshold":18446744073709551616'
    ),
    "too deep": down_payload(json.loads('{"a":' * 200 + "1" + "}" * 200), name="x"),
    "id a number": down_payload(GOOD, name="x").replace(b'{"header"', b'{"id":5,"header"'),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_message_that_cannot_be_read_is_refused(lc, case):
    error = refused(lc, f"down/{{node}}/{JOB}/default/x", MALFORMED[case])
    assert error["code"] == "malformed"


def test_an_unknown_kind_is_refused(lc):
    payload = down_payload({"kind": "Pod", "metadata": {"name": "p"}}, kind="pod", name="p")
    error = refused(lc, "down/{node}/pod/default/p", payload)
    assert error["code"] == "kind"
    assert "kind 'pod'" in error["error"]


def test_an_unknown_operation_is_refused(lc):
    error = refused(lc, f"down/{{node}}/{JOB}/default/x", down_payload(GOOD, name="x", operation="patch"))
    assert error["code"] == "operation"
    assert "'patch'" in error["error"]


def test_a_name_that_kubernetes_would_refuse_is_refused(lc):
    error = refused(
        lc, f"down/{{node}}/{JOB}/default/Job_1", down_payload(bad("Job_1", "spec.outputDir", "/o"), name="Job_1")
    )
    assert error["code"] == "topic"


@pytest.mark.parametrize(
    ("topic_name", "header_name", "content_name"),
    [("x", "y", "x"), ("x", "x", "y"), ("x", "y", "y")],
)
def test_topic_header_and_content_must_agree(lc, topic_name, header_name, content_name):
    payload = down_payload(job_resource(WAITING, name=content_name), name=header_name)
    assert refused(lc, f"down/{{node}}/{JOB}/default/{topic_name}", payload)["code"] == "mismatch"


def test_a_dataset_on_the_topic_of_a_job_is_refused(lc):
    payload = down_payload(dataset_resource(name="x"), name="x")
    assert refused(lc, f"down/{{node}}/{JOB}/default/x", payload)["code"] == "invalid"


def test_a_huge_message_is_refused_and_kept_whole(lc):
    resource = copy.deepcopy(GOOD)
    resource["metadata"]["annotations"] = {"a": "x" * 1_048_576}
    error = refused(lc, f"down/{{node}}/{JOB}/default/x", down_payload(resource, name="x", message_id="huge"))
    assert (error["code"], error["id"]) == ("too_large", "huge")


def test_a_result_of_an_unknown_job_gets_no_done_and_is_taken_once_the_job_is_there(lc, gm):
    message = {"name": "early", "ownerName": "late", "ownerKind": JOB, "kind": "train", "status": "running"}
    payload = json.dumps({"id": "e-1", **message}).encode()
    error = refused(lc, "worker/{node}/early/info", payload)
    assert (error["code"], error["id"]) == ("unknown_job", "e-1")
    gm.job("late")
    lc.tap.publish(lc.topic("worker/{node}/early/info"), payload)
    assert lc.tap.wait_for_topic(lc.topic("worker/{node}/early/done")).json == {"id": "e-1", "error": None}


def test_a_refused_tick_says_why(lc):
    for payload in (b"[]", b'{"time":"yesterday"}', b""):
        assert refused(lc, "tick/{node}", payload)["code"] == "malformed"


def test_an_acknowledgement_that_cannot_be_read_is_refused_and_one_of_unknown_ids_is_not(lc):
    assert refused(lc, "down/{node}/ack", b'{"ids":"all"}')["code"] == "malformed"
    count = len(lc.errors())
    foreign = [
        "edge9/default/dataset/ds/1-0123456789ab",
        "nonsense",
        "edge1/default/lifelonglearningjob/good/3-000000000000",
    ]
    lc.tap.publish(lc.topic("down/{node}/ack"), {"ids": foreign})
    assert refused(lc, "down/{node}/ack", b"{}")["code"] == "malformed"
    assert len(lc.errors()) == count + 1


@pytest.mark.parametrize("output_dir", ["/output/good", "/output/good/", "/output//good", "/output/./good"])
def test_a_second_live_job_with_the_same_output_folder_is_refused(lc, output_dir):
    payload = down_payload(job_resource(WAITING, name="twin", output_dir=output_dir), name="twin")
    error = refused(lc, f"down/{{node}}/{JOB}/default/twin", payload)
    assert error["code"] == "conflict"
    assert "default/lifelonglearningjob/good" in error["error"]
    assert lc.job("twin") is None


def test_an_output_folder_is_free_again_once_its_job_is_deleted(lc, gm):
    topic = lc.topic(f"up/{{node}}/{JOB}/default/second")
    gm.job("first", output_dir="/output/shared")
    lc.tap.wait_for_topic(lc.topic(f"up/{{node}}/{JOB}/default/first"))
    gm.delete("first")
    gm.job("second", output_dir="/output/shared")
    assert lc.tap.wait_for_topic(topic).json["content"]["input"]["dataURL"] == "/output/shared/data/train/1/data.txt"


def test_the_good_job_beside_them_is_as_it_was_and_goes_on(lc):
    """Runs after the others of this module; alone it shows the same of no refusal."""
    before = lc.job("good")
    assert before["version"] == 5  # inserted, samples, decision, file, confirmed
    player = PlayedGm(lc, with_ids=False)
    lc.tap.publish(lc.topic("tick/{node}"), {})
    player.result(ownerName="good", results=[{"format": "pkl", "url": "u"}])
    state = eventually(lambda: (s := lc.job("good")) and s["counts"]["worker_results"] == 1 and s)
    assert (state["version"], state["samples"]) == (before["version"] + 1, before["samples"])
    assert lc.is_running


def refused(lc: ControllerProcess, topic: str, payload: bytes) -> dict:
    """Send a message, wait for what is said of it, and check that quarantine has it to the byte."""
    count = len(lc.errors())
    lc.tap.publish(lc.topic(topic), payload)
    error = eventually(lambda: lc.errors()[count:], what=f"an error\n{lc.log[-2000:]}")[0]
    assert error.keys() == {"code", "error", "topic", "id", "quarantine", "time"}
    assert error["topic"] == lc.topic(topic)
    kept = json.loads((lc.state_dir / "quarantine" / f"{error['quarantine']}.json").read_bytes())
    assert base64.b64decode(kept["payload"]) == payload
    assert kept["id"] == error["quarantine"]
    assert {key: kept[key] for key in ("code", "error", "topic", "time")} == {
        key: error[key] for key in ("code", "error", "topic", "time")
    }
    return error
