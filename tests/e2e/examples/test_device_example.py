from __future__ import annotations

import hashlib
import json

import pytest
from support.link import Link
from support.played_gm import deployed, evaluated, train_ready, trained
from support.program import EXAMPLES, Program
from support.tap import Tap

SCRIPT = EXAMPLES / "device" / "device.py"
READ = """python -c "import pathlib, sys; print('read', pathlib.Path(sys.argv[1]).read_text())" """


class Node:
    """What a device sees of a node: a topic and a folder."""

    def __init__(self, broker, root, folder):
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir()
        self._broker = broker
        self._root = root

    @property
    def topic(self):
        return f"{self._root}/state/edge1/models/default/job1"

    def device(self, *arguments, url=None, command=READ):
        options = ("--node", "edge1", "--root", self._root, "--files", self.files, "--url", url or self._broker.url)
        return Program(self.folder / "device", SCRIPT, "job1", *options, *arguments, "--run", command)

    def deploy(self, round_, text, *, announced=None, url="/deploy/index.pkl"):
        """Put a model where it is announced to be; `announced` is the text whose hash is announced."""
        path = self.files / url.lstrip("/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.announce(round_, announced or text, url=url)

    def announce(self, round_, text, *, url="/deploy/index.pkl"):
        payload = {"round": round_, "url": url, "format": "pkl", "size": len(text), "time": "2026-05-09T08:00:00Z"}
        payload["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        with Tap(self._broker.port) as tap:
            tap.publish(self.topic, payload, retain=True)

    def withdraw(self):
        with Tap(self._broker.port) as tap:
            tap.publish(self.topic, b"", retain=True)

    @property
    def model(self):
        return (self.folder / "device" / "model.pkl").read_text()


@pytest.fixture
def node(shared_mosquitto, topic_root, tmp_path):
    return Node(shared_mosquitto, topic_root, tmp_path)


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_it_swaps_the_model_when_a_new_one_is_announced(node, protocol):
    node.deploy(1, "one")
    with node.device("--mqtt", protocol) as device:
        device.says("read one\n")
        node.deploy(2, "two")
        device.says("read two\n")
        assert device.interrupt().code == 130
    assert node.model == "two"


def test_a_file_with_another_hash_is_not_used_and_the_next_announcement_is_waited_for(node):
    node.deploy(1, "one")
    with node.device() as device:
        device.says("read one\n")
        node.deploy(2, "half", announced="whole")
        device.says("waiting for the next announcement")
        assert node.model == "one"
        node.deploy(3, "three")
        said = device.says("read three\n")
    assert "half" not in said


def test_a_file_that_is_longer_than_announced_is_not_copied_to_its_end(node):
    node.deploy(1, "x" * 3_000_000, announced="short")
    with node.device() as device:
        said = device.says("waiting for the next announcement")
    assert "has 1048576 bytes" in said
    assert {path.name for path in (node.folder / "device").iterdir()} == {"stdout", "stderr"}


def test_a_folder_that_is_not_there_yet_is_tried_again(node, tmp_path):
    node.announce(1, "one")
    with node.device() as device:
        device.says("trying again")
        node.deploy(1, "one")
        device.says("read one\n")


@pytest.mark.parametrize(("file", "words"), [("half", "has 4 bytes"), (None, "No such file")])
def test_once_ends_with_1_where_the_announced_model_cannot_be_used(node, file, words):
    if file is None:
        node.announce(1, "whole")
    else:
        node.deploy(1, file, announced="whole")
    with node.device("--once") as device:
        ended = device.ended()
    assert ended.code == 1
    assert words in ended.out
    assert "trying again" not in ended.out


def test_once_ends_with_1_without_credentials_for_the_models_bucket(node):
    pytest.importorskip("boto3")
    node.announce(1, "whole", url="s3://models/index.pkl")
    with node.device("--once") as device:
        ended = device.ended()
    assert ended.code == 1
    assert "s3://models/index.pkl: " in ended.out


def test_a_url_that_leads_out_of_the_nodes_files_is_not_read(node, tmp_path):
    (tmp_path / "secret").write_text("secret")
    node.announce(1, "secret", url="/../secret")
    with node.device() as device:
        assert "leads out of" in device.says("trying again")
    assert not (node.folder / "device" / "model.pkl").exists()


def test_it_goes_on_with_its_model_while_its_broker_is_away_and_catches_up_after(node, shared_mosquitto):
    node.deploy(1, "one")
    with Link(shared_mosquitto.port) as link:
        url = f"mqtt://127.0.0.1:{link.port}"
        with node.device(url=url) as device:
            device.says("read one\n")
            link.cut()
            node.deploy(2, "two")
            node.deploy(3, "three")
            assert node.model == "one"
            link.mend()
            device.says("read three\n")
        link.cut()
        with node.device(url=url) as device:
            assert device.says("read three\n").startswith("device: going on with the model of round 3\n")


def test_a_damaged_copy_is_fetched_again(node):
    node.deploy(1, "one")
    with node.device("--once") as device:
        assert device.ended().code == 0
    (node.folder / "device" / "model.pkl").write_text("damaged")
    with node.device("--once") as device:
        ended = device.ended()
    assert "going on" not in ended.out
    assert node.model == "one"


def test_a_deleted_job_is_told_once_and_the_next_one_is_used(node):
    node.deploy(1, "one")
    with node.device() as device:
        device.says("read one\n")
        node.withdraw()
        node.withdraw()
        device.says("the job has no model any more")
        node.deploy(2, "one")
        node.deploy(3, "three")
        said = device.says("read three\n")
    assert said.count("any more") == 1


def test_a_job_that_has_deployed_nothing_yet_is_waited_for(node):
    node.withdraw()
    with node.device() as device:
        node.withdraw()
        node.deploy(1, "one")
        said = device.says("read one\n")
    assert "any more" not in said


@pytest.mark.parametrize("payload", [b"\x1b[2J", b"{}", b"[]", b'{"round":"x","url":1,"sha256":2,"size":null}'])
def test_nonsense_is_told_and_does_not_end_it(node, payload):
    node.deploy(1, "one")
    with node.device() as device:
        device.says("read one\n")
        with Tap(node._broker.port) as tap:
            tap.publish(node.topic, payload)
        said = device.says("not understood")
        node.deploy(2, "two")
        device.says("read two\n")
    assert "\x1b" not in said


def test_a_command_that_fails_is_told_and_does_not_end_it(node):
    node.deploy(1, "one")
    with node.device(command="false") as device:
        device.says("false ended with 1")
        node.deploy(2, "two")
        device.says("false ended with 1", times=2)


def test_it_uses_what_a_controller_deploys(place, tmp_path):
    lc, gm = place.lc, place.gm
    lc.write("/data/ds.txt", "".join(f"a{i} 0\n" for i in range(10)))
    gm.next_up()
    assert gm.next_up()["content"] == train_ready(1)
    gm.move(*trained(1))
    gm.next_up()
    lc.write("/output/job1/eval/1/index.pkl", "a model")
    gm.move(*evaluated(1))
    gm.next_up()
    gm.move(*deployed(1))
    options = ("--node", lc.node, "--root", lc.topic_root, "--files", lc.root, "--url", place.url("5"), "--once")
    with Program(tmp_path / "device", SCRIPT, "job1", *options) as device:
        ended = device.ended()
    assert ended.code == 0, ended
    assert (tmp_path / "device" / "model.pkl").read_text() == "a model"
    assert json.loads((tmp_path / "device" / "model.pkl.json").read_text())["round"] == 1
