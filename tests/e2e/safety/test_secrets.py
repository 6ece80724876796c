"""A secret that GM sends is in one file, for the owner alone, and in nothing else that is written, said or logged."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, deployed, evaluated, train_ready, trained
from support.sedna import DATASET, JOB, condition, dataset_resource, job_resource
from support.waiting import eventually

SECRET = "AKIAplantedSecretOfTheTest0"
NEWER = "AKIAanotherPlantedSecret000"
BROKER = "brokerPasswordOfTheTest"
CREDENTIAL = json.dumps({"accessKeyID": SECRET, "secretAccessKey": SECRET})


def job(*, secret: str = SECRET, **resource) -> dict:
    found = job_resource(condition("Train", "Waiting", "2024-01-01T00:00:00Z"), **resource)
    found["metadata"]["annotations"] = {"sedna.io/credential": CREDENTIAL.replace(SECRET, secret)}
    container = {"name": "train", "env": [{"name": "S3_SECRET_KEY", "value": secret}, {"name": "EPOCHS", "value": "3"}]}
    found["spec"]["trainSpec"]["template"]["spec"]["containers"] = [container]
    return found


def spellings(secret: str) -> list[bytes]:
    """A secret as it is, and in base64 at each of the three places where it may begin."""
    found = [secret.encode()]
    for shift in range(3):
        encoded = base64.b64encode(b"x" * shift + secret.encode())
        found.append(encoded[4:24])
    return found


@pytest.fixture
def lc(shared_mosquitto, topic_root, tmp_path):
    url = shared_mosquitto.url.replace("//", f"//edge:{BROKER}@")
    with ControllerProcess(
        tmp_path, port=shared_mosquitto.port, topic_root=topic_root, mqtt_url=url, log="debug"
    ) as controller:
        yield controller


def holders(lc: ControllerProcess, *secrets: str) -> list[str]:
    """Files, topics and logs that hold a secret and must not."""
    found = []
    searched = [spelling for secret in (*secrets, BROKER) for spelling in spellings(secret)]
    for path in [p for p in lc.state_dir.rglob("*") if p.is_file()] + [p for p in lc.root.rglob("*") if p.is_file()]:
        is_kept_there = path.name == "secrets.json" or path.parent.name == "quarantine"
        if not is_kept_there and any(spelling in path.read_bytes() for spelling in searched):
            found.append(str(path))
    for message in lc.tap.messages:
        is_from_gm = message.topic.startswith((lc.topic("down/"), lc.topic("worker/")))
        if not is_from_gm and any(spelling in message.payload for spelling in searched):
            found.append(message.topic)
    if any(spelling.decode() in lc.log for spelling in searched):
        found.append("log")
    return found


def commands(lc: ControllerProcess) -> str:
    """What the reading commands print and export."""
    environment = {**os.environ, "LC_STATE_DIR": str(lc.state_dir)}
    printed = ""
    out = lc.state_dir.with_name("export.jsonl")
    for arguments in (
        ["history", "job1", "-o", "json"],
        ["show", "job1", "-o", "json"],
        ["export", "--output", str(out)],
    ):
        command = [sys.executable, "-m", "lc_events", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment)
        printed += done.stdout + done.stderr
    return printed + out.read_text()


def kept(lc: ControllerProcess) -> str:
    path = lc.state_dir / "secrets.json"
    if not path.exists():
        return ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text()


def spoilt(lc: ControllerProcess) -> None:
    """Messages with the secret in them that are refused for all kinds of reasons."""
    topic = lc.topic(f"down/{{node}}/{JOB}/default/bad")
    header = {"namespace": "default", "resourceKind": JOB, "resourceName": "bad", "operation": "insert"}
    whole = json.dumps({"header": header, "content": job(name="bad", train_prob=2.0)})
    lc.tap.publish(topic, whole[:-4])
    lc.tap.publish(topic, json.dumps({"header": header, "content": CREDENTIAL}))
    lc.tap.publish(topic, json.dumps({"header": {**header, "resourceKind": SECRET}, "content": job(name="bad")}))
    lc.tap.publish(topic, json.dumps({"header": header, "content": job(name="bad", train_prob=2.0)}))
    lc.tap.publish(topic, json.dumps({"header": header, "content": base64.b64encode(CREDENTIAL.encode()).decode()}))
    lc.tap.publish(lc.topic(f"down/{{node}}/{JOB}/default/other"), json.dumps({"header": header, "content": job()}))


def test_a_secret_is_nowhere_but_where_it_is_kept(lc):
    gm = PlayedGm(lc)
    lc.write("/data/ds.txt", "a\nb\nc\nd\ne\n")
    dataset = dataset_resource()
    dataset["metadata"]["annotations"] = {"sedna.io/credential": CREDENTIAL}
    gm.send(DATASET, "ds", dataset)
    gm.send(JOB, "job1", job())
    PlayedGm(lc, with_ids=False, as_base64=True).send(JOB, "job1", job())
    gm._resources["job1"] = job()
    gm.expect_all({"numberOfSamples": 5}, train_ready(1))
    gm.result(id="r-1")
    gm.next_up()
    lc.write("/output/job1/train/1/index.pkl", "trained")
    gm.move(*trained(1))
    gm.next_up()
    lc.write("/output/job1/eval/1/index.pkl", "evaluated")
    gm.move(*evaluated(1))
    gm.next_up()
    gm.move(*deployed(1))
    spoilt(lc)
    eventually(lambda: len(lc.errors()) == 6)
    lc.restart(kill=True)
    gm.again()
    eventually(lambda: lc.job() and lc.job()["gm_message"] == gm.last_id)
    assert holders(lc, SECRET) == []
    printed = commands(lc)
    assert not any(spelling.decode() in printed for spelling in spellings(SECRET))
    assert SECRET in kept(lc)


def test_a_newer_secret_takes_the_place_of_the_old_one_and_both_go_with_the_resource(lc):
    gm = PlayedGm(lc)
    gm.send(JOB, "job1", job())
    eventually(lambda: SECRET in kept(lc))
    gm.send(JOB, "job1", job(secret=NEWER))
    eventually(lambda: NEWER in kept(lc))
    assert SECRET not in kept(lc)
    lc.restart(kill=True)
    assert NEWER in kept(lc)
    gm.delete("job1")
    eventually(lambda: lc.job() is None)
    eventually(lambda: NEWER not in kept(lc))
    assert holders(lc, SECRET, NEWER) == []


def test_a_secret_that_alone_is_new_is_taken_without_an_id_too(lc):
    gm = PlayedGm(lc, with_ids=False)
    gm.send(JOB, "job1", job())
    eventually(lambda: SECRET in kept(lc))
    gm.send(JOB, "job1", job(secret=NEWER))
    eventually(lambda: NEWER in kept(lc))
    assert SECRET not in kept(lc)
    eventually(lambda: lc.job() and lc.job()["counts"]["duplicates"] == 1)


def test_a_delete_just_before_an_insert_does_not_take_its_secret(lc):
    gm = PlayedGm(lc)
    topic = lc.topic(f"down/{{node}}/{JOB}/default/job1")
    header = {"namespace": "default", "resourceKind": JOB, "resourceName": "job1"}
    insert, delete = {**header, "operation": "insert"}, {**header, "operation": "delete"}
    burst = []
    for number in range(50):
        burst.append((topic, {"id": f"i-{number}", "header": insert, "content": job()}))
        burst.append((topic, {"id": f"d-{number}", "header": delete}))
    lc.tap.publish_all([*burst, (topic, {"id": "last", "header": insert, "content": job()})])
    eventually(lambda: lc.job() and lc.job()["gm_message"] == "last")
    assert SECRET in kept(lc)
    gm.delete("job1")
    eventually(lambda: SECRET not in kept(lc))


def test_a_secret_that_a_kill_left_behind_goes_at_the_next_start(lc):
    gm = PlayedGm(lc)
    gm.send(JOB, "job1", job())
    eventually(lambda: SECRET in kept(lc))
    lc.stop()
    path = lc.state_dir / "secrets.json"
    left = json.loads(path.read_text()) | {"default/dataset/gone": {"metadata/annotations/token": NEWER}}
    path.write_text(json.dumps(left))
    lc.start()
    assert SECRET in kept(lc)
    assert NEWER not in kept(lc)


def test_secrets_that_cannot_be_read_are_refused_in_words(lc):
    lc.stop()
    (lc.state_dir / "secrets.json").write_text("{")
    assert lc.exit_code() == 6
    assert "secrets.json cannot be read" in lc.log
