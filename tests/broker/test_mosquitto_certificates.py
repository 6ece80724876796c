from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.certificates import Certificate, issued
from support.prepared import TESTER, Prepared, attempt, certificates, prepare
from support.refused import is_refused
from support.tap import Tap
from support.visitor import MQTT_3_1_1, MQTT_5, TurnedAwayError, Visitor

from lc_events.errors import BrokerError
from lc_events.mqtt.client import MqttClient, Publication
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics

TOPICS = Topics()
EVENT = TOPICS.event_job("edge1", "default", "job1")
DOWN = TOPICS.down("edge1", "dataset", "default", "d")


@dataclass(frozen=True)
class Cloud:
    """A broker that runs, and the folders of the certificates that belong to it."""

    prepared: Prepared
    authority: Path
    certificates: Path

    def settings(self, user: str, *, ca: Path | None = None, folder: Path | None = None) -> MqttSettings:
        """How a program of ours is told to come in by its certificate."""
        folder = folder or self.certificates
        return MqttSettings.from_url(
            f"mqtts://127.0.0.1:{self.prepared.tls_port}",
            ca_file=ca or self.certificates / "ca.crt",
            cert_file=folder / f"{user}.crt",
            key_file=folder / f"{user}.key",
            client_id=user,
        )

    def context(self, user: str) -> ssl.SSLContext:
        """The same for a client of any kind."""
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        context.load_cert_chain(self.certificates / f"{user}.crt", self.certificates / f"{user}.key")
        return context


@pytest.fixture(scope="module")
def cloud(tmp_path_factory) -> Iterator[Cloud]:
    folder = tmp_path_factory.mktemp("cloud")
    authority, made = folder / "authority", folder / "certificates"
    certificates(authority, made, "broker", "localhost", "127.0.0.1")
    certificates(authority, made, "client", "lc-edge1", "bridge-edge1", "device", "gm", "stranger")
    options = ("--certificates", str(made), "--account", "lc:edge1")
    prepared = prepare("cloud", folder / "cloud", "edge1", "edge2", options=options)
    with prepared.broker():
        yield Cloud(prepared, authority, made)


def test_a_certificate_is_a_user_with_the_rights_of_that_name(cloud):
    with (
        Tap(cloud.prepared.port, "sedna/#", **cloud.prepared.login(TESTER)) as tap,
        MqttClient(cloud.settings("lc-edge1"), on_message=lambda _: None) as client,
    ):
        client.wait_connected(20)
        client.publish_and_wait(Publication(EVENT, b"{}"), 20)
        assert tap.wait_for_topic(EVENT).payload == b"{}"
        with pytest.raises(BrokerError, match="the broker's ACL forbids it"):
            client.publish_and_wait(Publication(TOPICS.event_job("edge2", "default", "job1"), b"{}"), 20)


@pytest.mark.parametrize("protocol", [MQTT_3_1_1, MQTT_5], ids=["3.1.1", "5"])
def test_a_password_does_not_change_who_a_certificate_is(cloud, protocol):
    login = cloud.prepared.login("gm")
    with (
        Tap(cloud.prepared.port, "sedna/#", **cloud.prepared.login(TESTER)) as tap,
        Visitor(cloud.prepared.tls_port, protocol, tls=cloud.context("device"), **login) as visitor,
    ):
        visitor.publish(DOWN)
        visitor.publish(TOPICS.ask("edge1", "state"))
        tap.wait_for_topic(TOPICS.ask("edge1", "state"))
        assert not tap.of(DOWN)


@pytest.mark.parametrize("protocol", [MQTT_3_1_1, MQTT_5], ids=["3.1.1", "5"])
@pytest.mark.parametrize("name", ["+", "#", "a/b", "stranger"])
def test_a_certificate_of_a_name_without_rights_opens_nothing(cloud, protocol, name, tmp_path):
    """`certificates` makes none for wildcards; somebody else's hand might."""
    ours = Certificate(cloud.authority / "ca.crt", cloud.authority / "ca.key")
    (tmp_path / "c").mkdir()
    made = issued(tmp_path / "c", "client", ours, common_name=name)
    context = ssl.create_default_context(cafile=str(ours.cert))
    context.load_cert_chain(made.cert, made.key)
    with (
        Tap(cloud.prepared.port, "#", **cloud.prepared.login(TESTER)) as tap,
        Visitor(cloud.prepared.tls_port, protocol, tls=context) as visitor,
    ):
        visitor.subscribe("#", "sedna/answer/edge1/#")
        for topic in (DOWN, EVENT, TOPICS.answer("edge1", "device")):
            visitor.publish(topic, "spoofed")
            tap.publish(topic, b"true")
        visitor.subscribe("the/end")
        tap.wait_for_count(3)
        assert {message.payload for message in tap.messages} == {b"true"}
        assert visitor.heard.topics == []


def test_the_tls_port_is_closed_without_a_certificate(cloud):
    context = ssl.create_default_context(cafile=str(cloud.certificates / "ca.crt"))
    login = cloud.prepared.login("gm")
    with pytest.raises(TurnedAwayError), Visitor(cloud.prepared.tls_port, tls=context, **login):
        pytest.fail("came in")


def test_wrong_expired_and_foreign_certificates_are_refused_in_words(cloud, tmp_path):
    foreign = certificates(tmp_path / "foreign-authority", tmp_path / "foreign", "client", "lc-edge1")
    expired = certificates(cloud.authority, tmp_path / "expired", "client", "lc-edge1", days=-1)
    assert is_refused(cloud.settings("lc-edge1", ca=foreign / "ca.crt"), "CA that is not trusted: wrong or missing CA")
    assert is_refused(cloud.settings("lc-edge1", folder=foreign), "does not trust the CA of our certificate")
    assert is_refused(cloud.settings("lc-edge1", folder=expired), "our certificate has expired")


def test_a_nodes_certificate_cannot_pretend_to_be_the_broker(cloud, tmp_path):
    stolen = tmp_path / "stolen"
    stolen.mkdir()
    for name, source in (("broker.crt", "lc-edge1.crt"), ("broker.key", "lc-edge1.key"), ("ca.crt", "ca.crt")):
        (stolen / name).write_bytes((cloud.certificates / source).read_bytes())
    pretender = prepare("cloud", tmp_path / "pretender", options=("--certificates", str(stolen)))
    with pretender.broker():
        settings = Cloud(pretender, cloud.authority, cloud.certificates).settings("lc-edge1")
        assert is_refused(settings, "the broker's certificate")


def test_the_bridge_of_an_edge_goes_by_its_certificate(cloud, tmp_path):
    made = tmp_path / "certificates"
    certificates(cloud.authority, made, "broker", "127.0.0.1")
    certificates(cloud.authority, made, "client", "bridge-edge1", "lc-edge1")
    address = f"127.0.0.1:{cloud.prepared.tls_port}"
    options = ("--certificates", str(made), "--cloud", address)
    edge = prepare("edge", tmp_path / "edge1", "edge1", options=options)
    assert "remote_password" not in edge.config.read_text()
    with edge.broker() as broker, Tap(cloud.prepared.port, "sedna/#", **cloud.prepared.login(TESTER)) as tap:
        tap.wait_for_topic(TOPICS.link("edge1"), 30)
        settings = Cloud(edge, cloud.authority, made).settings("lc-edge1")
        with MqttClient(settings, on_message=lambda _: None) as client:
            client.wait_connected(20)
            client.publish_and_wait(Publication(EVENT, b"by tls"), 20)
        tap.wait_for(lambda message: message.payload == b"by tls", 30)
        assert "password" not in broker.log


def test_a_certificate_that_is_good_is_kept_and_one_that_is_due_is_renewed(tmp_path):
    authority, folder = tmp_path / "authority", tmp_path / "certificates"
    certificates(authority, folder, "client", "one")
    certificates(authority, folder, "client", "other", days=29)
    before = {name: (folder / f"{name}.crt").read_bytes() for name in ("ca", "one", "other")}
    certificates(authority, folder, "client", "one", "other")
    after = {name: (folder / f"{name}.crt").read_bytes() for name in ("ca", "one", "other")}
    assert [name for name in before if before[name] != after[name]] == ["other"]
    assert (folder / "one.key").stat().st_mode & 0o777 == 0o400
    assert (authority / "ca.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["+", "#", "a/b", "", "a b", "$SYS", "x" * 65])
def test_no_certificate_is_made_for_a_name_that_is_none(tmp_path, name):
    done = attempt("certificates", str(tmp_path / "authority"), str(tmp_path / "made"), "client", name)
    assert done.returncode == 2
    assert "A-Z a-z 0-9" in done.stderr
    assert not list((tmp_path / "made").glob("*.key"))
