from __future__ import annotations

import pytest
from support.certificates import issued, self_signed
from support.mosquitto import Mosquitto, find_mosquitto
from support.ports import free_port
from support.prepared import prepare

from lc_events.mqtt.internal import InternalBroker

DENIED = "(0x87): the broker's ACL forbids it"


@pytest.fixture(scope="module")
def edge(tmp_path_factory):
    """The project's own broker of an edge, with a role for everybody; its bridge leads nowhere."""
    folder = tmp_path_factory.mktemp("edge")
    users = folder / "edge" / "users"
    users.mkdir(parents=True)
    (users / "bridge-edge1").write_text("x" * 32)
    prepared = prepare("edge", folder / "edge", "edge1", options=("--cloud", f"127.0.0.1:{free_port()}"))
    with prepared.broker():
        yield prepared


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    prepared = prepare("cloud", tmp_path_factory.mktemp("cloud") / "cloud", "edge1")
    with prepared.broker():
        yield prepared


def test_the_account_of_a_controller_may_all_that_it_needs(edge, examined, tmp_path):
    found = examined(node="edge1", mqtt_url=edge.url("lc-edge1"), state_dir=tmp_path)
    assert found.wrong == ["store", "link"]
    assert found.one("acl", "ok")
    assert edge.password("lc-edge1") not in str(found)


def test_each_publication_that_the_broker_denies_is_told_in_words(edge, examined, tmp_path):
    found = examined(node="edge1", mqtt_url=edge.url("device"), state_dir=tmp_path)
    denied = [finding.says.split()[1] for finding in found.of("acl")]
    assert {topic.split("/")[1] for topic in denied} == {"up", "state", "events", "answer", "worker", "errors"}
    assert all(DENIED in finding.says for finding in found.of("acl"))
    assert "give the user device the rights of the role lc for node edge1" in found.of("acl")[0].advice


def test_a_controller_of_another_node_is_denied_all(edge, examined, tmp_path):
    found = examined(node="edge2", mqtt_url=edge.url("lc-edge1"), state_dir=tmp_path)
    assert len(found.of("acl")) == 6


def test_an_operators_account_is_not_to_be_made_a_global_manager(cloud, examined, tmp_path):
    found = examined("GM", mqtt_url=cloud.url("operator"), state_dir=tmp_path).of("acl")
    assert len(found) == 3
    advice = {finding.advice.split("; ")[0] for finding in found}
    assert advice == {
        "run doctor with the global manager's account, or a local controller's settings (LC_NODE, LC_MQTT_URL …)"
    }


def test_the_global_manager_is_examined_as_one(cloud, examined, tmp_path):
    found = examined("GM", mqtt_url=cloud.url("gm"), state_dir=tmp_path)
    assert found.wrong == ["store"]
    assert found.one("acl", "ok")
    assert found.of("nodes") + found.of("node edge1")
    assert not found.of("datasets")


def test_a_wrong_password_is_told_and_not_shown(edge, examined, tmp_path):
    found = examined(node="edge1", mqtt_url=f"mqtt://lc-edge1:guessed@127.0.0.1:{edge.port}", state_dir=tmp_path)
    assert "does not accept this user, password or client id" in found.one("broker", "wrong").says
    assert "guessed" not in str(found)


@pytest.mark.parametrize(
    ("ca", "words"), [("ca", "valid until"), ("foreign", "signed by a CA that is not trusted"), ("none", "no PEM")]
)
def test_tls_is_told_in_words(tmp_path, examined, ca, words):
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    ours, foreign = self_signed(tmp_path, "ca"), self_signed(tmp_path, "foreign")
    server = issued(tmp_path, "server", ours)
    files = {"ca": ours.cert, "foreign": foreign.cert, "none": tmp_path / "none"}
    files["none"].write_text("nothing")
    with Mosquitto(tmp_path / "broker", listener=f"certfile {server.cert}\nkeyfile {server.key}") as broker:
        found = examined(mqtt_url=f"mqtts://127.0.0.1:{broker.port}", mqtt_ca_file=files[ca], state_dir=tmp_path)
    finding = found.one("tls", "note") if ca == "ca" else found.one("broker", "wrong")
    assert words in finding.says


def test_a_broker_that_speaks_only_3_1_1_does_not_say_what_it_denies(tmp_path, examined):
    pytest.importorskip("iotcore")
    with InternalBroker(tmp_path / "broker", port_v4=0, port_v5=0) as broker:
        old, new = broker.settings_3_1_1(), broker.settings()
        for settings, level in ((old, "note"), (new, "ok")):
            url = f"mqtt://{settings.username}:{settings.password}@127.0.0.1:{settings.port}"
            found = examined(node="edge1", mqtt_url=url, state_dir=tmp_path)
            assert found.one("acl", level)
            assert found.one("session", "ok")


def test_an_internal_broker_is_found_by_what_its_controller_wrote_down(tmp_path, examined):
    pytest.importorskip("iotcore")
    assert "broker.env" in examined(node="edge1", mqtt_mode="internal", state_dir=tmp_path).one("broker", "wrong").says
    with InternalBroker(tmp_path, port_v4=0, port_v5=0):
        assert examined(node="edge1", mqtt_mode="internal", state_dir=tmp_path).one("broker", "ok")
