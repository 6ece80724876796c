"""The controller while a server is down, slow, or refuses: it waits, says why, holds up nobody else, loses nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.s3 import annotations, objects, open_uploads, s3_dataset, storage_at, train_ready_at
from support.s3_proxy import Fault
from support.sedna import DATASET
from support.waiting import eventually

from lc_events.controller.lanes import REMOTE_THREADS

FAULTS = {
    "slow": (Fault(stall=True), "does not answer in time"),
    "denied": (Fault(403, "AccessDenied"), "access is denied"),
    "no_bucket": (Fault(404, "NoSuchBucket"), "there is no such bucket"),
    "missing": (Fault(404, "NoSuchKey"), "there is no such object"),
    "busy": (Fault(503, "SlowDown"), "asks for fewer requests"),
    "expired": (Fault(400, "ExpiredToken"), "credentials have expired"),
    "clock": (Fault(403, "RequestTimeTooSkewed"), "clocks of this node and of the server"),
    "server": (Fault(500, "InternalError"), "trouble of its own"),
    "broken_off": (Fault(cut_after=0), "broke off its answer"),
    "down": (None, "the server cannot be reached"),
}
TEN = "".join(f"{number}\n" for number in range(10)).encode()


@pytest.fixture
def lc(shared_mosquitto, topic_root, tmp_path):
    with ControllerProcess(
        tmp_path, port=shared_mosquitto.port, topic_root=topic_root, dataset_seconds=0.2, s3_timeout_seconds=1
    ) as controller:
        yield controller


def events(lc, stream, name):
    """Events of a stream of that name."""
    with_name = lc.journal().stream(f"default/{stream}")
    return [event for event in with_name if type(event).__name__ == name]


def begin(proxy, fault):
    """A fresh copy of a fault, from now on; None: nobody listens."""
    if fault is None:
        proxy.stop()
    else:
        proxy.fail(Fault(fault.status, fault.code, fault.cut_after, fault.stall))


def end(proxy, fault):
    proxy.start() if fault is None else proxy.heal()


def local_job_trains(lc, gm):
    """A job that has nothing to do with S3."""
    lc.write("/data/local.txt", TEN)
    gm.dataset("local", url="/data/local.txt")
    gm.job("local", dataset="local")
    gm.expect_all({"numberOfSamples": 10}, train_ready(1, "local"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_dataset_whose_server_has_trouble_waits_and_says_why(lc, gm, proxy, prefix, name):
    storage, (fault, words) = storage_at(proxy.upstream), FAULTS[name]
    storage.write(f"{prefix}/ds.txt", [TEN])
    begin(proxy, fault)
    s3_dataset(gm, f"{prefix}/ds.txt", annotations(proxy.endpoint))
    gm.job("job1")
    seen = eventually(lambda: (d := lc.latest("state/{node}/datasets/default/ds")) and d["error"] and d, what=lc.log)
    assert words in seen["error"]
    assert f"{prefix}/ds.txt" in seen["error"]
    lc.tap.publish(lc.topic("tick/{node}"), {})
    verdict = eventually(lambda: (v := (lc.job() or {}).get("verdict")) and v["reason"] == "dataset" and v)
    assert words in verdict["detail"]
    local_job_trains(lc, gm)
    end(proxy, fault)
    gm.expect_all({"numberOfSamples": 10}, train_ready_at("/output/job1", 1, index=True))
    eventually(lambda: lc.latest("state/{node}/datasets/default/ds")["error"] is None)
    [unreadable] = events(lc, "dataset/ds", "DatasetUnreadable")
    assert words in unreadable.error


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "missing"])
def test_an_output_whose_server_has_trouble_is_written_once_it_works(lc, gm, proxy, prefix, name):
    storage, (fault, words) = storage_at(proxy.upstream), FAULTS[name]
    lc.write("/data/ds.txt", TEN)
    begin(proxy, fault)
    gm.dataset("ds")
    gm.job("job1", output_dir=f"{prefix}/out", annotations=annotations(proxy.endpoint))
    gm.expect({"numberOfSamples": 10})
    failed = eventually(lambda: events(lc, "lifelonglearningjob/job1", "TriggerFailed"), what=lc.log)
    assert words in failed[0].error
    assert (failed[0].stage, failed[0].round, failed[0].final) == ("Train", 1, False)
    local_job_trains(lc, gm)
    end(proxy, fault)
    gm.expect(train_ready_at(f"{prefix}/out", 1))
    assert objects(storage, prefix) == {f"{prefix}/out/data/train/1/data.txt": "".join(f"{n}\n" for n in range(8))}
    assert open_uploads(storage, "bkt") == []
    state = eventually(lambda: (s := lc.job()) and s["triggers"]["train"] == "completed" and s)
    assert state["samples"]["train_total"] == 8
    assert not list(lc.state_dir.rglob("*.lc-part"))


def test_the_pauses_between_attempts_grow(lc, gm, proxy, storage, prefix):
    storage.write(f"{prefix}/ds.txt", [TEN])
    proxy.fail(Fault(403, "AccessDenied"))
    s3_dataset(gm, f"{prefix}/ds.txt", annotations(proxy.endpoint))
    eventually(lambda: len(proxy.passed) >= 8, 20)
    heads = [p for p in proxy.passed if p.method == "HEAD"]
    gaps = [after.at - before.at for before, after in pairwise(heads)]
    assert gaps[0] > 0.9
    assert gaps[1] > 1.8
    assert gaps[2] > 3.6


def test_jobs_at_a_server_that_hangs_do_not_hold_up_the_others(shared_mosquitto, topic_root, tmp_path, proxy, prefix):
    proxy.fail(Fault(stall=True))
    given = annotations(proxy.endpoint)
    settings = {"dataset_seconds": 0.2, "s3_timeout_seconds": 60}
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, **settings) as lc:
        gm = PlayedGm(lc)
        for number in range(25):
            s3_dataset(gm, f"{prefix}/{number}.txt", given, name=f"ds{number}")
        lc.write("/data/ds.txt", TEN)
        gm.dataset("ds")
        for number in range(25):
            gm.job(f"job{number}", output_dir=f"{prefix}/out{number}", annotations=given)
        gm.expect({"numberOfSamples": 10})
        eventually(lambda: [p.method for p in proxy.passed].count("PUT") == REMOTE_THREADS)
        local_job_trains(lc, gm)
        assert [p.method for p in proxy.passed].count("PUT") == REMOTE_THREADS
        proxy.heal()
        gm.expect_all(*(train_ready_at(f"{prefix}/out{number}", 1) for number in range(25)))


def test_a_new_credential_is_used_at_once(lc, gm, s3_server, prefix):
    storage = s3_server.storage()
    storage.write(f"{prefix}/ds.txt", [TEN])
    wrong = annotations(s3_server.endpoint, s3_server.access_key, "SECRETKEY123")
    right = annotations(s3_server.endpoint, s3_server.access_key, s3_server.secret_key)
    s3_dataset(gm, f"{prefix}/ds.txt", wrong)
    eventually(lambda: events(lc, "dataset/ds", "DatasetUnreadable"))
    s3_dataset(gm, f"{prefix}/ds.txt", right)
    gm.expect({"numberOfSamples": 10})
    gm.job("job1", output_dir=f"{prefix}/out", annotations=wrong)
    failed = eventually(lambda: events(lc, "lifelonglearningjob/job1", "TriggerFailed"))
    assert "secret key does not fit" in failed[0].error
    gm.job("job1", output_dir=f"{prefix}/out", annotations=right)
    gm.expect(train_ready_at(f"{prefix}/out", 1, index=True))
    assert "SECRETKEY123" not in lc.log
    assert not any(b"SECRETKEY123" in m.payload for m in lc.tap.messages if "/down/" not in m.topic)


def test_a_job_without_a_credential_uses_its_datasets_in_the_same_bucket(lc, gm, s3_server, prefix):
    storage = s3_server.storage()
    storage.write(f"{prefix}/ds.txt", [TEN])
    s3_dataset(gm, f"{prefix}/ds.txt", annotations(s3_server.endpoint, s3_server.access_key, s3_server.secret_key))
    gm.job("job1", output_dir=f"{prefix}/out")
    gm.expect({"numberOfSamples": 10}, train_ready_at(f"{prefix}/out", 1, index=True))


def test_a_dataset_without_a_credential_is_read_with_that_of_its_job(lc, gm, s3_server, prefix):
    storage = s3_server.storage()
    storage.write(f"{prefix}/ds.txt", [TEN])
    given = annotations(s3_server.endpoint, s3_server.access_key, s3_server.secret_key)
    gm.job("job1", output_dir=f"{prefix}/out", annotations=given)
    s3_dataset(gm, f"{prefix}/ds.txt", None)
    gm.expect_all({"numberOfSamples": 10}, train_ready_at(f"{prefix}/out", 1, index=True))


def test_a_credential_that_cannot_be_read_is_named_and_not_quoted(lc, gm, prefix):
    s3_dataset(gm, f"{prefix}/ds.txt", {"sedna.io/credential": "SECRETKEY123"})
    [unreadable] = eventually(lambda: events(lc, "dataset/ds", "DatasetUnreadable"))
    assert unreadable.code == "credential"
    assert "sedna.io/credential is not a JSON object" in unreadable.error
    assert "SECRETKEY123" not in lc.log


def test_a_stop_does_not_wait_for_a_server_that_hangs(lc, gm, proxy, prefix, storage):
    lc.write("/data/ds.txt", TEN)
    fault = proxy.fail(Fault(stall=True), lambda p: p.method == "PUT")
    gm.dataset("ds")
    gm.job("job1", output_dir=f"{prefix}/out", annotations=annotations(proxy.endpoint))
    assert fault.held.wait(10)
    assert lc.stop() == 0
    proxy.heal()
    lc.start()
    gm.expect_all({"numberOfSamples": 10}, train_ready_at(f"{prefix}/out", 1))
    assert list(objects(storage, prefix)) == [f"{prefix}/out/data/train/1/data.txt"]


def test_a_dataset_moved_to_s3_counts_anew_and_never_mixes(lc, gm, s3_server, prefix):
    storage = s3_server.storage()
    lc.write("/data/ds.txt", TEN)
    gm.dataset("ds")
    gm.job("job1")
    gm.expect_all({"numberOfSamples": 10}, train_ready(1))
    storage.write(f"{prefix}/ds.txt", [TEN + b"10\n"])
    s3_dataset(gm, f"{prefix}/ds.txt", annotations(s3_server.endpoint, s3_server.access_key, s3_server.secret_key))
    gm.expect({"numberOfSamples": 0}, {"numberOfSamples": 11})
    gm.delete("ds", DATASET)
    assert lc.errors() == []
