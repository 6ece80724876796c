"""`kill -9` while something is on its way to or from a server: nothing is lost, done twice, or left behind."""

from __future__ import annotations

import hashlib

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import deployed
from support.s3 import annotations, objects, open_uploads, s3_dataset, storage_at, train_ready_at
from support.s3_proxy import Fault
from support.sedna import condition, output
from support.waiting import eventually

from lc_events.storage.s3 import PART_BYTES

LINE = 1000


@pytest.fixture
def lc(shared_mosquitto, topic_root, tmp_path):
    settings = {"dataset_seconds": 0.2, "s3_timeout_seconds": 60, "model_places": "s3://other,/models"}
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, **settings) as controller:
        yield controller


def samples(first, last, width=8):
    return "".join(f"imgs/{number:0{width}}.jpg {number}\n" for number in range(first, last)).encode()


def begin(gm, proxy, prefix, data):
    """A dataset and a job, both in S3 behind the proxy."""
    storage_at(proxy.upstream).write(f"{prefix}/ds.txt", [data])
    s3_dataset(gm, f"{prefix}/ds.txt", annotations(proxy.endpoint))
    gm.job("job1", output_dir=f"{prefix}/out", annotations=annotations(proxy.endpoint))


def killed_at(lc, proxy, fault, when, start):
    """Let the controller come to a request for which `when` is true, kill it there, and start it again."""
    held = proxy.fail(fault, when)
    start()
    assert held.held.wait(20), lc.log
    lc.kill()
    proxy.heal()
    lc.start()


def leftovers(lc):
    """Temporary files, which would be there for ever."""
    return [p for root in (lc.state_dir, lc.root) for p in root.rglob("*") if p.suffix in (".lc-part", ".new", ".tmp")]


def assert_round_1(lc, gm, proxy, prefix, data):
    lines = data.splitlines(keepends=True)
    count = len(lines) * 8 // 10
    gm.expect_all({"numberOfSamples": len(lines)}, train_ready_at(f"{prefix}/out", 1, index=True))
    storage = storage_at(proxy.upstream)
    found = objects(storage, f"{prefix}/out")
    folder = f"{prefix}/out/data/train/1"
    assert found.keys() == {f"{folder}/data.txt", f"{folder}/dataIndex.txt"}
    assert found[f"{folder}/data.txt"].encode() == b"".join(lines[:count])
    assert open_uploads(storage, "bkt") == []
    assert leftovers(lc) == []
    assert len({m.json["id"] for m in gm.all_up()}) == 2
    eventually(lambda: lc.job()["samples"]["train_total"] == count)


@pytest.mark.parametrize("name", ["data.txt", "dataIndex.txt"])
def test_killed_during_an_upload(lc, gm, proxy, prefix, name):
    data = samples(0, 10)
    killed_at(
        lc,
        proxy,
        Fault(stall=True),
        lambda p: p.method == "PUT" and p.key.endswith(f"/{name}"),
        lambda: begin(gm, proxy, prefix, data),
    )
    assert_round_1(lc, gm, proxy, prefix, data)


@pytest.mark.parametrize("query", ["partNumber=2", "uploadId=", "uploads"])
def test_killed_during_an_upload_in_parts(lc, gm, proxy, prefix, query):
    data = samples(0, 12_000, width=LINE)
    killed_at(
        lc,
        proxy,
        Fault(stall=True),
        lambda p: p.method in ("PUT", "POST") and query in p.query and (query != "uploadId=" or p.method == "POST"),
        lambda: begin(gm, proxy, prefix, data),
    )
    assert_round_1(lc, gm, proxy, prefix, data)


def test_killed_when_an_upload_is_done_and_its_answer_is_not(lc, gm, proxy, prefix):
    data = samples(0, 10)
    killed_at(
        lc,
        proxy,
        Fault(stall=True, cut_after=0),
        lambda p: p.method == "PUT" and p.key.endswith("/data.txt"),
        lambda: begin(gm, proxy, prefix, data),
    )
    assert_round_1(lc, gm, proxy, prefix, data)


@pytest.mark.parametrize("at", ["HEAD", "GET"])
def test_killed_during_a_download(lc, gm, proxy, prefix, at):
    data = samples(0, 10)
    killed_at(
        lc,
        proxy,
        Fault(stall=True),
        lambda p: p.method == at and p.key.endswith("/ds.txt"),
        lambda: begin(gm, proxy, prefix, data),
    )
    assert_round_1(lc, gm, proxy, prefix, data)


def test_killed_while_the_tail_of_a_dataset_is_fetched(lc, gm, proxy, prefix):
    begin(gm, proxy, prefix, samples(0, 10))
    gm.expect_all({"numberOfSamples": 10}, train_ready_at(f"{prefix}/out", 1, index=True))
    storage = storage_at(proxy.upstream)
    killed_at(
        lc,
        proxy,
        Fault(stall=True),
        lambda p: p.method == "GET" and p.headers.get("range", "").startswith(f"bytes={len(samples(0, 10))}-"),
        lambda: storage.write(f"{prefix}/ds.txt", [samples(0, 20)]),
    )
    gm.expect({"numberOfSamples": 20})
    eventually(lambda: lc.job()["samples"]["seen"] == 20)
    assert leftovers(lc) == []


@pytest.mark.parametrize("done", [False, True])
def test_killed_during_a_copy(lc, gm, proxy, prefix, done):
    begin(gm, proxy, prefix, samples(0, 10))
    gm.expect_all({"numberOfSamples": 10}, train_ready_at(f"{prefix}/out", 1, index=True))
    storage = storage_at(proxy.upstream)
    model = b"MODEL" * 1000
    storage.write(f"{prefix}/out/eval/1/index.pkl", [model])
    killed_at(
        lc,
        proxy,
        Fault(stall=True, cut_after=0 if done else None),
        lambda p: p.is_copy,
        lambda: gm.move(
            condition("Eval", "Completed", "2024-01-01T00:00:14Z", output(f"{prefix}/out/eval/1/index.pkl")),
            condition("Deploy", "Waiting", "2024-01-01T00:00:15Z"),
        ),
    )
    heard = gm.next_up()
    assert (heard["content"]["phase"], heard["content"]["status"]) == ("Deploy", "Ready")
    assert b"".join(storage.read(f"{prefix}/out/deploy/index.pkl")) == model
    state = eventually(lambda: lc.latest("state/{node}/models/default/job1"))
    assert state["url"] == f"{prefix}/out/deploy/index.pkl"
    assert (state["sha256"], state["size"]) == (hashlib.sha256(model).hexdigest(), len(model))
    gm.move(*deployed(1))
    assert lc.errors() == []


def deploy(gm, proxy, url, output_dir):
    """A job that comes to Deploy/Waiting with a model from elsewhere."""
    stand = condition("Eval", "Completed", "t1", output(url)), condition("Deploy", "Waiting", "t2")
    gm.job("job1", *stand, output_dir=output_dir, annotations=annotations(proxy.endpoint))


def assert_deployed(lc, gm, output_dir, model):
    assert gm.next_up(timeout=20)["content"]["status"] == "Ready"
    state = eventually(lambda: lc.latest("state/{node}/models/default/job1"))
    assert state["url"] == f"{output_dir}/deploy/index.pkl"
    assert (state["sha256"], state["size"]) == (hashlib.sha256(model).hexdigest(), len(model))
    assert len({m.json["id"] for m in gm.all_up()}) == 1
    assert leftovers(lc) == []
    assert lc.errors() == []


@pytest.mark.parametrize("done", [False, True])
def test_killed_while_a_model_is_copied_from_another_bucket(lc, gm, proxy, prefix, done):
    storage, model = storage_at(proxy.upstream), b"MODEL" * 1000
    url = f"{prefix.replace('bkt', 'other')}/m.pkl"
    storage.write(url, [model])
    fault = Fault(stall=True, cut_after=0 if done else None)
    killed_at(lc, proxy, fault, lambda p: p.is_copy, lambda: deploy(gm, proxy, url, f"{prefix}/out"))
    assert_deployed(lc, gm, f"{prefix}/out", model)
    assert b"".join(storage.read(f"{prefix}/out/deploy/index.pkl")) == model


@pytest.mark.parametrize("query", ["partNumber=2", "uploadId="])
def test_killed_while_a_local_model_is_uploaded(lc, gm, proxy, prefix, query):
    storage, model = storage_at(proxy.upstream), b"MODEL" * (PART_BYTES // 4)
    lc.write("/models/m.pkl", model)
    killed_at(
        lc,
        proxy,
        Fault(stall=True),
        lambda p: query in p.query and (query != "uploadId=" or p.method == "POST"),
        lambda: deploy(gm, proxy, "/models/m.pkl", f"{prefix}/out"),
    )
    assert_deployed(lc, gm, f"{prefix}/out", model)
    assert b"".join(storage.read(f"{prefix}/out/deploy/index.pkl")) == model
    assert open_uploads(storage, "bkt") == []


def test_killed_while_a_model_is_downloaded(lc, gm, proxy, prefix):
    model = b"MODEL" * (PART_BYTES // 4)
    url = f"{prefix.replace('bkt', 'other')}/m.pkl"
    storage_at(proxy.upstream).write(url, [model])
    proxy.fail(Fault(cut_after=PART_BYTES // 2), lambda p: p.headers.get("range", "").startswith("bytes=0-"))
    in_the_middle = proxy.fail(Fault(stall=True), lambda p: p.method == "GET")
    deploy(gm, proxy, url, "/output/job1")
    assert in_the_middle.held.wait(20), lc.log
    lc.kill()
    assert [path.parent.name for path in leftovers(lc)] == ["deploy"]
    proxy.heal()
    lc.start()
    assert_deployed(lc, gm, "/output/job1", model)
    assert [path.name for path in lc.file("/output/job1/deploy").iterdir()] == ["index.pkl"]
    assert lc.file("/output/job1/deploy/index.pkl").read_bytes() == model


def test_a_model_that_does_not_exist_is_reported_as_failed(lc, gm, proxy, prefix):
    begin(gm, proxy, prefix, samples(0, 10))
    gm.expect_all({"numberOfSamples": 10}, train_ready_at(f"{prefix}/out", 1, index=True))
    gm.move(
        condition("Eval", "Completed", "2024-01-01T00:00:14Z", output(f"{prefix}/out/eval/1/index.pkl")),
        condition("Deploy", "Waiting", "2024-01-01T00:00:15Z"),
    )
    heard = gm.next_up()
    assert (heard["content"]["phase"], heard["content"]["status"]) == ("Deploy", "Failed")
