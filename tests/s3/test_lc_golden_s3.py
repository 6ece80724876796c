"""Three rounds with dataset, samples and models in S3, message by message as the real Sedna LC was recorded."""

from __future__ import annotations

import json
import re

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.recordings import recording
from support.s3 import objects, train_ready_at
from support.waiting import eventually

LOCAL = "".join(f"imgs/{number:03}.jpg {number % 2}\n" for number in range(10))
ANSWERED_BY_SEDNA_ALONE = [("job2mixlocalout", 2), ("job2mixlocalout", 3)]
"""Sedna reports a waiting condition again whenever its trigger fires; we once."""


@pytest.fixture
def clean(s3_server):
    """The bucket as it was before the recording."""
    storage = s3_server.storage()
    for url in [*storage.list("s3://bkt/data"), *storage.list("s3://bkt/out")]:
        storage.delete(url)
    return storage


class Replay:
    """Plays GM, worker and dataset of the recording; what comes up is waited for before the next line goes down."""

    def __init__(self, lc, gm, storage, annotation):
        self._lc = lc
        self._gm = gm
        self._storage = storage
        self._annotation = annotation
        self._due: list[dict] = []
        self.compared = 0

    def play(self, line):
        match line:
            case {"dir": "lc->gm", "header": header, "content": content}:
                name, content = header["resourceName"], json.loads(content)
                round_ = re.search(r"/train/(\d+)/", json.dumps(content))
                if round_ is None or (name, int(round_[1])) not in ANSWERED_BY_SEDNA_ALONE:
                    self._due.append(content)
                if name == "job2mixlocalout" and not self.compared:
                    self._due.append(train_ready_at("s3://bkt/out/job3", 1))
            case {"dir": "s3", "objects": recorded}:
                self._settle()
                self._compare(recorded)
            case {"dir": "http", "request": {"path": path, "body": body}}:
                if body["kind"] == "eval":
                    [model] = body["results"]
                    self._storage.write(model["url"], [f"MODEL{model['url'].split('/')[-2]}".encode()])
                self._gm.report(path.split("/")[3], body)
            case {"dir": "gm->lc", "header": header, "content": content}:
                self._settle()
                if "sedna.io/credential" in content["metadata"].get("annotations", {}):
                    content["metadata"]["annotations"]["sedna.io/credential"] = self._annotation
                self._gm.send(header["resourceKind"], header["resourceName"], content)

    def finish(self):
        self._settle()

    def _settle(self):
        due, self._due = self._due, []
        self._gm.expect_all(*due)

    def _compare(self, recorded):
        found = objects(self._storage, "s3://bkt")
        of_recording = {
            url: text for url, text in found.items() if re.match(r"s3://bkt/(data|out/job1)/", url) is not None
        }
        assert of_recording == mended(recorded)
        self.compared += 1


def mended(recorded):
    """What is recorded, without the repeated samples of Sedna's eval files."""
    return {
        url: "".join(dict.fromkeys(text.splitlines(keepends=True))) if "/data/eval/" in url else text
        for url, text in recorded.items()
    }


def test_a_recorded_run_in_s3_sends_and_writes_what_sedna_does(
    shared_mosquitto, topic_root, tmp_path, s3_server, clean
):
    lines = recording("s3_txt")[1:]
    first, *rest = lines
    dataset = [text for line in lines if line["dir"] == "s3" for text in [line["objects"]["s3://bkt/data/ds.txt"]]]
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, dataset_seconds=0.2) as lc:
        lc.write("/data/lds.txt", LOCAL)
        replay = Replay(lc, PlayedGm(lc), clean, s3_server.annotation)
        clean.write("s3://bkt/data/ds.txt", [first["objects"]["s3://bkt/data/ds.txt"].encode()])
        for line in rest:
            if line["dir"] == "lc->gm" and json.loads(line["content"]).get("numberOfSamples") in (20, 30):
                count = json.loads(line["content"])["numberOfSamples"]
                clean.write("s3://bkt/data/ds.txt", [samples(count).encode()])
            replay.play(line)
        replay.finish()
        assert replay.compared == 6
        assert dataset[-1] == samples(20)
        index = "s3://bkt/data/\n" + "".join(f"imgs/{n:03}.jpg\nlabels/{n:03}.txt\n" for n in range(8))
        assert lc.tree("/output/job2")["/output/job2/data/train/1/dataIndex.txt"] == index
        assert lc.tree("/output/job2")["/output/job2/data/train/1/data.txt"] == samples(8)
        assert objects(clean, "s3://bkt/out/job3") == {
            "s3://bkt/out/job3/data/train/1/data.txt": "".join(LOCAL.splitlines(keepends=True)[:8])
        }
        state = eventually(lambda: (s := lc.job())["round"] == 3 and s["triggers"]["train"] == "completed" and s)
        assert state["samples"]["train_total"] == 24
        assert lc.errors() == []
        assert s3_server.secret_key not in lc.log
        assert not any(s3_server.secret_key.encode() in m.payload for m in lc.tap.messages if "/down/" not in m.topic)
        stored = b"".join(path.read_bytes() for path in lc.state_dir.glob("events.db*"))
        assert s3_server.secret_key.encode() not in stored


def samples(count):
    return "".join(f"imgs/{n:03}.jpg labels/{n:03}.txt {n % 2}\n" for n in range(count))
