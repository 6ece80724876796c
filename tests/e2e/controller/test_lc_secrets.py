"""Secrets that GM must send us are in no event, log or topic of ours; in one file, which only we may read."""

from __future__ import annotations

import copy

from support.played_gm import train_ready
from support.sedna import JOB, condition, down_payload, job_resource
from support.waiting import eventually

SECRET = "hunter2-hunter2"
TEN = "".join(f"s{i}\n" for i in range(10))


def test_a_secret_in_a_job_stays_out_of_store_log_and_topics(lc, gm):
    resource = copy.deepcopy(job_resource(condition("Train", "Waiting")))
    env = [{"name": "S3_SECRET_KEY", "value": SECRET}, {"name": "EPOCHS", "value": "3"}]
    resource["spec"]["trainSpec"]["template"]["spec"]["containers"] = [{"name": "train", "env": env}]
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    lc.tap.publish(lc.topic(f"down/{{node}}/{JOB}/default/job1"), down_payload(resource, message_id="s-1"))
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    bad = copy.deepcopy(resource)
    bad["spec"]["dataset"]["trainProb"] = 2
    lc.tap.publish(lc.topic(f"down/{{node}}/{JOB}/default/job1"), down_payload(bad, message_id="s-2"))
    eventually(lc.errors)
    assert lc.stop() == 0
    for message in lc.tap.messages:
        assert SECRET.encode() not in message.payload or message.topic.startswith(lc.topic("down/"))
    assert SECRET not in lc.log
    holders = [path for path in lc.state_dir.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert [path.name for path in holders] == ["secrets.json"]
    assert holders[0].stat().st_mode & 0o777 == 0o600
    assert lc.state_dir.stat().st_mode & 0o077 == 0
    with lc.journal() as journal:
        assert any(b"EPOCHS" in row.state for row in journal.rows.rows())


def test_a_secret_is_forgotten_with_its_job(lc, gm):
    resource = copy.deepcopy(job_resource(condition("Train", "Waiting")))
    resource["spec"]["trainSpec"]["template"]["spec"]["containers"] = [
        {"name": "train", "env": [{"name": "API_TOKEN", "value": SECRET}]}
    ]
    lc.tap.publish(lc.topic(f"down/{{node}}/{JOB}/default/job1"), down_payload(resource))
    eventually(lc.job)
    assert SECRET in (lc.state_dir / "secrets.json").read_text()
    gm.delete()
    eventually(lambda: SECRET not in (lc.state_dir / "secrets.json").read_text())
