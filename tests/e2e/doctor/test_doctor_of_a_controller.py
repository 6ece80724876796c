from __future__ import annotations

import json

import orjson
import pytest
from support.program import Program
from support.tampering import Tampered
from support.waiting import eventually

from lc_events.mqtt.oneshot import retained
from lc_events.mqtt.settings import MqttSettings

TEN = "".join(f"a{i} 0\n" for i in range(10))
STREAM = "default/lifelonglearningjob/job1"


@pytest.fixture
def working(lc, gm):
    """A controller with a job that has trained, all of whose reports are confirmed."""
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    gm.next_up()
    gm.next_up()
    eventually(lambda: lc.job() and lc.job()["triggers"]["train"] == "completed")
    eventually(lambda: confirmed(lc))
    return lc


def confirmed(lc):
    journal = lc.journal()
    try:
        return sum(row.name == "ReportsConfirmed" for row in journal.rows.rows()) == 2
    finally:
        journal.close()


def test_where_all_is_well_nothing_is_wrong_and_every_check_says_so(working, examined, settings_of, checks):
    found = examined(**settings_of(working))
    assert found.wrong == [], str(found)
    assert found.checks == set(checks)
    assert "MQTT 5" in found.one("broker", "ok").says
    assert f"process {working.pid} has the state folder" in found.one("controller", "ok").says
    assert "every link" in found.one("chain", "ok").says
    assert "10 records counted" in found.one("dataset default/ds", "ok").says
    assert found.one("heads", "ok").says == "the one on the broker is in this store"
    assert found.one("acl", "ok")
    assert found.one("session", "ok")
    assert found.one("reports", "ok")


def test_nothing_is_written_to_the_store_and_nothing_is_left_on_the_broker(working, examined, settings_of):
    def store():
        return {path.name: path.read_bytes() for path in working.state_dir.glob("events.db*") if "shm" not in path.name}

    def broker():
        root = working.topic_root
        return retained(MqttSettings(port=working.tap.port), f"{root}/#", marker=f"{root}/answer/edge1/end")

    before = broker()
    examined(**settings_of(working))
    assert broker() == before
    assert working.errors()[-1]["code"] == "doctor"
    assert len(working.errors()) == 1
    working.kill()
    files = store()
    assert examined(**settings_of(working)).one("chain", "ok")
    assert store() == files


def test_however_much_is_broken_every_line_is_there(tmp_path, examined, checks):
    state = tmp_path / "state"
    state.mkdir()
    (state / "events.db").write_bytes(b"no database" * 1000)
    (state / "secrets.json").write_text("{")
    (state / "quarantine").write_text("")
    found = examined(
        node="a/b",
        mqtt_url="mqtt://127.0.0.1:1",
        state_dir=state,
        timezone="Nowhere/Land",
        tick_seconds=-1,
        root=state / "events.db",
    )
    assert found.checks == set(checks)
    assert {"settings", "store", "broker", "state folder"} <= set(found.wrong)
    [settings] = found.of("settings")
    assert all(name in settings.says for name in ("LC_NODE", "LC_TIMEZONE", "LC_TICK_SECONDS", "LC_ROOT"))
    assert "connection refused" in found.one("broker", "wrong").says


def test_a_broker_that_cannot_even_be_named_is_told_with_all_else(tmp_path, examined, checks):
    found = examined(mqtt_url="http://me:hush-hush@host", log="loud", config=tmp_path / "none.toml", state_dir=tmp_path)
    assert found.checks == set(checks)
    assert "must begin with mqtt://" in found.one("broker", "wrong").says
    assert "none.toml" in str(found.of("settings"))
    assert "hush" not in str(found)


def test_a_controller_that_is_not_running_is_told_and_is_no_fault(working, examined, settings_of):
    working.stop()
    found = examined(**settings_of(working))
    assert found.wrong == []
    assert "start it" in found.one("controller", "note").advice
    assert "no process uses it" in found.one("state folder", "ok").says


def test_a_controller_that_says_it_is_online_and_does_not_answer_is_told(working, examined, settings_of):
    status = working.births()[-1].payload
    working.stop()
    working.tap.publish(working.topic("state/{node}/status"), status, retain=True)
    assert "does not answer" in examined(**settings_of(working)).one("controller", "wrong").says


def test_a_controller_on_another_broker_is_told(working, mosquitto, examined, settings_of):
    found = examined(**settings_of(working, mqtt_url=mosquitto.url))
    assert found.wrong == ["controller"]
    assert "was never seen" in found.one("controller", "wrong").says


@pytest.mark.parametrize(("link", "level"), [(b"1", "ok"), (b"0", "wrong"), (b"", "skipped")])
def test_the_bridges_link_is_told(working, examined, settings_of, link, level):
    working.tap.publish(working.topic("state/{node}/link"), link, retain=True)
    assert examined(**settings_of(working)).one("link", level)


def test_a_history_that_was_changed_is_told_with_its_version(working, examined, settings_of):
    working.stop()
    with Tampered(working.state_dir / "events.db") as store:
        store.run(
            "UPDATE stored_events SET state = ? WHERE originator_id = ? AND originator_version = 2", b"{}", STREAM
        )
    [finding] = [f for f in examined(**settings_of(working)).of("chain") if f.level == "wrong"]
    assert f"{STREAM} version 2" in finding.says


def test_an_older_copy_of_the_store_is_told_by_the_heads_on_the_broker(working, examined, settings_of):
    head = working.latest("state/{node}/heads/default/job1")
    topic = working.topic("state/{node}/heads/default/job1")
    working.tap.publish(topic, {**head, "version": head["version"] + 3}, retain=True)
    assert "this store ends at" in examined(**settings_of(working)).one("heads", "wrong").says


def test_what_is_retained_of_jobs_that_are_no_more_is_told_with_the_command_that_clears_it(
    working, examined, settings_of
):
    working.tap.publish(working.topic("state/{node}/jobs/default/job9"), "{}", retain=True)
    working.tap.publish(working.topic("tick/{node}"), "{}", retain=True)
    found = examined(**settings_of(working))
    assert found.wrong == ["leftovers", "leftovers"]
    jobs, tick = found.of("leftovers")
    assert jobs.advice == f"mosquitto_pub -r -n -t '{working.topic('state/{node}/jobs/default/job9')}'"
    assert "comes again with every connection" in tick.says


def test_a_dataset_that_cannot_be_read_is_told(working, examined, settings_of):
    working.file("/data/ds.txt").unlink()
    finding = examined(**settings_of(working)).one("dataset default/ds", "wrong")
    assert f"{working.file('/data/ds.txt')}: No such file or directory" in finding.says


def test_an_s3_server_out_of_reach_is_told_without_its_keys(lc, gm, examined, settings_of):
    annotations = {
        "sedna.io/credential": json.dumps(
            {"s3-endpoint": "127.0.0.1:1", "s3-usehttps": "0", "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "hush-hush"}
        )
    }
    gm.job(output_dir="s3://bkt/output/job1", annotations=annotations)
    eventually(lc.job)
    found = examined(**settings_of(lc))
    assert "http://127.0.0.1:1" in found.one("s3", "wrong").advice
    assert "hush-hush" not in str(found)


def test_reports_that_nobody_confirms_are_told(lc, gm, examined, settings_of):
    lc.write("/data/ds.txt", TEN)
    gm.dataset()
    gm.job()
    eventually(lambda: lc.job() and lc.job()["triggers"]["train"] == "completed")
    assert "2 not confirmed" in examined(**settings_of(lc)).one("reports", "note").says


def test_an_effect_that_fails_is_told_with_its_reason(lc, gm, examined, settings_of):
    lc.write("/data/ds.txt", TEN)
    lc.write("/output", "a file where a folder must be")
    gm.dataset()
    gm.job()
    eventually(lambda: b"TriggerFailed" in b"".join(m.payload for m in lc.tap.messages if "/events/" in m.topic))
    finding = examined(**settings_of(lc)).one("effects", "wrong")
    assert "default/job1: Train of round 1" in finding.says
    assert "tried again at least every 60 s" in finding.says


def test_what_was_refused_is_counted_by_code(working, examined, settings_of):
    working.tap.publish(working.topic("worker/{node}/w1/info"), "nonsense")
    eventually(working.errors)
    assert "1 refused message is kept: malformed 1" in examined(**settings_of(working)).one("quarantine", "note").says


def test_secrets_that_others_may_read_are_told(working, examined, settings_of):
    secrets = working.state_dir / "secrets.json"
    secrets.write_text("{}")
    secrets.chmod(0o644)
    assert examined(**settings_of(working)).one("state folder", "wrong").advice == f"chmod 600 {secrets}"


def test_the_store_of_another_node_is_told(working, examined, settings_of):
    assert "is the history of node edge1" in examined(**settings_of(working, node="edge2")).one("store", "wrong").says


def test_a_future_event_is_a_clock_that_went_back(working, examined, settings_of):
    working.stop()
    working.start(test_clock=_ahead(working, 3600))
    working.tap.publish(working.topic("worker/{node}/w1/info"), orjson.dumps({"name": "x"}))
    working.stop()
    found = examined(**settings_of(working))
    assert any("the status of node" in finding.says for finding in found.of("clock")), found


def _ahead(lc, seconds):
    path = lc.root / "clock"
    path.write_text(str(seconds))
    return path


def test_the_command_prints_a_line_each_and_ends_with_1_if_something_is_wrong(working, settings_of, tmp_path):
    environment = {f"LC_{name.upper()}": value for name, value in settings_of(working).items()}
    with Program(tmp_path / "text", "-m", "lc_events", "doctor", environment=environment) as program:
        ended = program.ended()
    assert ended.code == 0, ended
    assert ended.err == ""
    assert {line.split()[0] for line in ended.out.splitlines()} <= {"ok", "note", "skipped"}
    working.tap.publish(working.topic("state/{node}/link"), "0", retain=True)
    with Program(tmp_path / "json", "-m", "lc_events", "doctor", "-o", "json", environment=environment) as program:
        ended = program.ended()
    answer = json.loads(ended.out)
    assert ended.code == 1
    assert answer["ok"] is False
    assert [check["check"] for check in answer["checks"] if check["level"] == "wrong"] == ["link"]
    assert set(answer["checks"][0]) == {"check", "level", "says", "advice"}
