from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from support.certificates import Certificate, issued, self_signed
from support.mosquitto import Mosquitto, find_mosquitto
from support.refused import is_refused

from lc_events.mqtt.client import MqttClient, Publication
from lc_events.mqtt.settings import MqttSettings

NOBODY = Certificate(Path(), Path())


@dataclass(frozen=True)
class Authorities:
    """Ours, and one that nobody trusts."""

    folder: Path
    ours: Certificate
    foreign: Certificate


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    return Authorities(folder, self_signed(folder, "ca"), self_signed(folder, "foreign-ca"))


def _tls_broker(folder: Path, authorities: Authorities, server: Certificate, *, ask_for_certificate: bool) -> Mosquitto:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    lines = [f"certfile {server.cert}", f"keyfile {server.key}", f"cafile {authorities.ours.cert}"]
    if ask_for_certificate:
        lines += ["require_certificate true", "use_identity_as_username true"]
    return Mosquitto(folder / "mosquitto", listener="\n".join(lines))


def _settings(port: int, *, ca: Path | None, client: Certificate = NOBODY, host: str = "127.0.0.1") -> MqttSettings:
    files = {} if client is NOBODY else {"cert_file": client.cert, "key_file": client.key}
    return MqttSettings.from_url(f"mqtts://{host}:{port}", ca_file=ca, client_id="lc", **files)


def test_with_client_certificates_end_to_end(tmp_path, authorities):
    server = issued(authorities.folder, "server", authorities.ours)
    ours = issued(authorities.folder, "lc-edge1", authorities.ours)
    with _tls_broker(tmp_path, authorities, server, ask_for_certificate=True) as broker:
        settings = _settings(broker.port, ca=authorities.ours.cert, client=ours)
        with MqttClient(settings, on_message=lambda _: None) as client:
            client.wait_connected(20)
            client.publish_and_wait(Publication("a", b"x" * 200_000), 20)
            assert client.connected


def test_a_broker_that_cannot_be_trusted_is_refused(tmp_path, authorities):
    server = issued(authorities.folder, "server", authorities.ours)
    with _tls_broker(tmp_path, authorities, server, ask_for_certificate=False) as broker:
        not_trusted = "CA that is not trusted: wrong or missing CA file"
        assert is_refused(_settings(broker.port, ca=authorities.foreign.cert), not_trusted)
        assert is_refused(_settings(broker.port, ca=None), not_trusted)
        by_name = _settings(broker.port, ca=authorities.ours.cert, host="localhost")
        assert is_refused(by_name, "does not name the host that we connect to")


def test_an_expired_certificate_of_the_broker_is_said_so(tmp_path, authorities):
    server = issued(authorities.folder, "expired-server", authorities.ours, days=-1)
    with _tls_broker(tmp_path, authorities, server, ask_for_certificate=False) as broker:
        assert is_refused(_settings(broker.port, ca=authorities.ours.cert), "the broker's certificate has expired")


def test_a_broker_that_does_not_accept_our_certificate_is_quoted(tmp_path, authorities):
    server = issued(authorities.folder, "server", authorities.ours)
    expired = issued(authorities.folder, "expired", authorities.ours, days=-1)
    foreign = issued(authorities.folder, "foreign", authorities.foreign)
    with _tls_broker(tmp_path, authorities, server, ask_for_certificate=True) as broker:
        ca = authorities.ours.cert
        assert is_refused(_settings(broker.port, ca=ca), "wants a client certificate and we have none")
        assert is_refused(_settings(broker.port, ca=ca, client=expired), "our certificate has expired")
        assert is_refused(_settings(broker.port, ca=ca, client=foreign), "does not trust the CA of our certificate")


def test_a_port_without_tls_is_named(shared_mosquitto, authorities):
    assert is_refused(_settings(shared_mosquitto.port, ca=authorities.ours.cert), "mqtt:// instead of mqtts://")
