"""Models elsewhere than below their job's outputDir: deployed where the owner of the node says so, else not."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.s3 import annotations, open_uploads
from support.s3_proxy import Fault, S3Proxy
from support.sedna import condition, output
from support.waiting import eventually

from lc_events.domain import events as e
from lc_events.storage.s3 import COPY_PART_BYTES, PART_BYTES

JOB = "default/lifelonglearningjob/job1"
MIB = os.urandom(1 << 20)


def model_of(size):
    return (MIB * (size // len(MIB) + 1))[:size]


class Scene:
    """A job that comes to Deploy/Waiting with a model, before it a controller with model places.

    Its S3 server is the real one behind a proxy that counts what passes. `out` is an outputDir in the bucket `bkt`,
    `elsewhere` a folder of the bucket `other`.
    """

    def __init__(self, s3_server, proxy, prefix, controller):
        self.storage = s3_server.storage()
        self.proxy = proxy
        self.out = f"{prefix}/out"
        self.elsewhere = prefix.replace("s3://bkt/", "s3://other/")
        self._given = annotations(proxy.endpoint, s3_server.access_key, s3_server.secret_key)
        self._controller = controller

    def start(self, *places):
        given = {"model_places": ",".join(places)} if places else {}
        self.lc = self._controller(**given)
        self.gm = PlayedGm(self.lc)
        return self

    @property
    def deployed(self):
        return b"".join(self.storage.read(f"{self.out}/deploy/index.pkl"))

    @property
    def has_deployed(self):
        return self.storage.exists(f"{self.out}/deploy/index.pkl") or self.lc.file("/output/job1/deploy").exists()

    @property
    def copies(self):
        return [passed for passed in self.proxy.passed if passed.is_copy]

    def begin(self, url, output_dir, name="job1"):
        stand = condition("Eval", "Completed", "t1", output(url)), condition("Deploy", "Waiting", "t2")
        self.gm.job(name, *stand, output_dir=output_dir, annotations=self._given)

    def expect_deployed(self, url, output_dir, data):
        """The report names the source, the models topic the copy."""
        self.begin(url, output_dir)
        assert self.gm.next_up(timeout=30)["content"] == {
            "phase": "Deploy",
            "status": "Ready",
            "input": {"models": [{"format": "pkl", "url": url, "classes": None}]},
            "output": None,
        }
        found = eventually(lambda: self.lc.latest("state/{node}/models/default/job1"))
        sha256 = hashlib.sha256(data).hexdigest()
        assert (found["url"], found["sha256"], found["size"]) == (f"{output_dir}/deploy/index.pkl", sha256, len(data))

    def expect_refused(self, url, output_dir, words):
        """It is reported as failed, for good, and said why; nothing was read or written."""
        self.begin(url, output_dir)
        content = self.gm.next_up()["content"]
        assert (content["phase"], content["status"]) == ("Deploy", "Failed")
        assert content["input"]["models"][0]["url"] == url
        [failed] = [event for event in self.lc.journal().stream(JOB) if isinstance(event, e.TriggerFailed)]
        assert (failed.code, failed.final) == ("outside", True)
        assert words in failed.error
        assert not self.has_deployed
        assert [passed.key for passed in self.proxy.passed if passed.key.endswith(".pkl")] == []


@pytest.fixture
def scene(s3_server, prefix, shared_mosquitto, topic_root, tmp_path):
    with S3Proxy(s3_server.endpoint) as proxy, ExitStack() as running:

        def controller(**given):
            lc = ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, **given)
            return running.enter_context(lc)

        yield Scene(s3_server, proxy, prefix, controller)


@pytest.mark.parametrize("size", [5000, COPY_PART_BYTES + 1])
def test_the_server_copies_a_model_of_another_bucket_and_we_send_none_of_it(scene, size):
    url, data = f"{scene.elsewhere}/released/m.pkl", model_of(size)
    scene.storage.write(url, [data])
    scene.start(scene.elsewhere).expect_deployed(url, scene.out, data)
    assert scene.deployed == data
    assert len(scene.copies) == (1 if size <= COPY_PART_BYTES else 2)
    assert all(passed.headers["x-amz-copy-source"].startswith("other/") for passed in scene.copies)
    assert sum(passed.received for passed in scene.proxy.passed if passed.method == "PUT") == 0
    # Read once, for the hash that the models topic holds.
    read = [passed.answered for passed in scene.proxy.passed if passed.method == "GET" and passed.key.endswith("m.pkl")]
    assert sum(read) == size
    assert open_uploads(scene.storage, "bkt") == []


@pytest.mark.parametrize("size", [5000, PART_BYTES + 1])
def test_a_local_model_goes_to_an_output_in_s3(scene, size):
    data = model_of(size)
    scene.start("/srv/models").lc.write("/srv/models/released/m.pkl", data)
    scene.expect_deployed("/srv/models/released/m.pkl", scene.out, data)
    assert scene.deployed == data


def test_a_model_in_s3_goes_to_a_local_output(scene):
    url, data = f"{scene.elsewhere}/released/m.pkl", model_of(PART_BYTES + 1)
    scene.storage.write(url, [data])
    scene.start("/srv/models", f"{scene.elsewhere}/released/").expect_deployed(url, "/output/job1", data)
    assert scene.lc.file("/output/job1/deploy/index.pkl").read_bytes() == data
    assert [path.name for path in scene.lc.file("/output/job1/deploy").iterdir()] == ["index.pkl"]


@pytest.mark.parametrize("source", ["another bucket", "local"])
@pytest.mark.parametrize("target", ["s3", "local"])
def test_without_the_setting_a_model_elsewhere_is_refused(scene, source, target):
    scene.start().lc.write("/srv/models/m.pkl", "not for devices")
    scene.storage.write(f"{scene.elsewhere}/m.pkl", [b"not for devices"])
    url = "/srv/models/m.pkl" if source == "local" else f"{scene.elsewhere}/m.pkl"
    output_dir = "/output/job1" if target == "local" else scene.out
    scene.expect_refused(url, output_dir, f"outputDir {output_dir} nor in a place that LC_MODEL_PLACES names")


@pytest.mark.parametrize(
    "path", ["ab/m.pkl", "secret.pkl", "a/../secret.pkl", "a/%2e%2e/secret.pkl", "a/%252E%252e/secret.pkl", "a/"]
)
def test_a_prefix_opens_whole_names_and_nobody_climbs_out_of_it(scene, path):
    for name in ("ab/m.pkl", "secret.pkl", "a/m.pkl"):
        scene.storage.write(f"{scene.elsewhere}/{name}", [b"not for devices"])
    scene.start(f"{scene.elsewhere}/a").expect_refused(f"{scene.elsewhere}/{path}", scene.out, "LC_MODEL_PLACES")


def test_a_link_in_a_local_place_leads_nowhere(scene):
    scene.start("/srv/models").lc.write("/secret", "root:x")
    scene.lc.file("/srv/models").mkdir(parents=True)
    scene.lc.file("/srv/models/m.pkl").symlink_to(scene.lc.file("/secret"))
    scene.expect_refused("/srv/models/m.pkl", scene.out, "does not lie below /srv/models, links followed")


def test_a_local_place_may_itself_be_a_link(scene):
    scene.start("/srv/models").lc.write("/mnt/disk/m.pkl", "model")
    scene.lc.file("/srv").mkdir()
    scene.lc.file("/srv/models").symlink_to(scene.lc.file("/mnt/disk"))
    scene.lc.stop()
    scene.lc.start()  # what is there at the start counts
    scene.expect_deployed("/srv/models/m.pkl", scene.out, b"model")


def test_a_link_in_the_output_does_not_lead_a_model_from_s3_elsewhere(scene):
    url = f"{scene.elsewhere}/m.pkl"
    scene.storage.write(url, [b"model"])
    scene.start(scene.elsewhere).lc.write("/etc/cron.d/index.pkl", "as it was")
    scene.lc.file("/output/job1").mkdir(parents=True)
    scene.lc.file("/output/job1/deploy").symlink_to(scene.lc.file("/etc/cron.d"))
    scene.begin(url, "/output/job1")
    assert scene.gm.next_up()["content"]["status"] == "Failed"
    assert scene.lc.file("/etc/cron.d/index.pkl").read_text() == "as it was"


def test_a_server_that_hangs_holds_up_no_copy_of_local_models(scene):
    scene.start("/srv/models", scene.elsewhere).lc.write("/srv/models/m.pkl", "local")
    scene.storage.write(f"{scene.elsewhere}/m.pkl", [b"remote"])
    hanging = scene.proxy.fail(Fault(stall=True))
    for number in range(2, 8):
        scene.begin(f"{scene.elsewhere}/m.pkl", f"/output/job{number}", name=f"job{number}")
    assert hanging.held.wait(20), scene.lc.log
    scene.expect_deployed("/srv/models/m.pkl", "/output/job1", b"local")
    scene.proxy.heal()
    assert [scene.gm.next_up(timeout=30)["content"]["status"] for _ in range(6)] == ["Ready"] * 6
