from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys

import pytest
from support.ports import answers
from support.waiting import eventually

from lc_events.errors import BrokerError, UsageError
from lc_events.mqtt.client import Connected, MqttClient, Publication, Received
from lc_events.mqtt.internal import InternalBroker
from lc_events.mqtt.oneshot import retained
from lc_events.mqtt.settings import MqttSettings

pytest.importorskip("iotcore")

HOST = """
import signal, sys, pathlib, threading
from lc_events.mqtt.internal import InternalBroker
stop = threading.Event()
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
broker = InternalBroker(pathlib.Path(sys.argv[1]), port_v4=0, port_v5=0)
broker.start()
print(broker.port_v5, flush=True)
sys.stdin.read()
broker.stop()
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with InternalBroker(tmp_path_factory.mktemp("state"), port_v4=0, port_v5=0) as broker:
        yield broker


@pytest.fixture(params=["MQTT 5", "MQTT 3.1.1"])
def settings_of(request, broker):
    return broker.settings if request.param == "MQTT 5" else broker.settings_3_1_1


def _client(settings: MqttSettings, received: list[Received], connected: list[Connected], **options) -> MqttClient:
    return MqttClient(
        settings,
        on_message=received.append,
        on_connected=connected.append,
        reconnect_seconds=(0.05, 0.2),
        **options,
    )


def test_a_session_outlives_its_connection_and_what_was_not_acknowledged_comes_again(broker, settings_of, topic_root):
    received: list[Received] = []
    connected: list[Connected] = []
    subscriptions = [f"{topic_root}/#"]
    with (
        _client(settings_of(topic_root), received, connected, subscriptions=subscriptions) as client,
        _client(settings_of(), [], [], clean=True) as sender,
    ):
        client.wait_connected(10)
        sender.wait_connected(10)
        for i in range(3):
            sender.publish_and_wait(Publication(f"{topic_root}/{i}", b"%d" % i), 10)
        eventually(lambda: len(received) == 3)
        client.ack(received[0])
        sender.publish_and_wait(Publication(f"{topic_root}/x", b"x"), 10)
        eventually(lambda: len(received) == 4)
        client.stop()
        sender.publish_and_wait(Publication(f"{topic_root}/offline", b"offline"), 10)
    with _client(settings_of(topic_root), received, connected, subscriptions=subscriptions) as client:
        eventually(lambda: len(received) == 8)
        assert [each.payload for each in received[4:]] == [b"1", b"2", b"x", b"offline"]
        assert connected[1].session_present
        assert {each.protocol for each in connected} == {5 if settings_of().port == broker.port_v5 else 4}


def test_finishing_work_out_of_order_does_not_end_the_connection(settings_of, topic_root):
    received: list[Received] = []
    with _client(settings_of(topic_root), received, [], subscriptions=[topic_root]) as client:
        client.wait_connected(10)
        for i in range(20):
            client.publish_and_wait(Publication(topic_root, b"%d" % i), 10)
        eventually(lambda: len(received) == 20)
        for each in reversed(received):
            client.ack(each)
        for i in range(200):
            client.publish(Publication(topic_root, b"more %d" % i))
        seen = 20
        while seen < 220:
            eventually(lambda: len(received) > seen)  # noqa: B023 (called at once)
            for each in received[seen:]:
                client.ack(each)
                seen += 1
        assert [each.payload for each in received[20:]] == [b"more %d" % i for i in range(200)]
        assert client.connection == 1


def test_will_retained_messages_and_a_mebibyte_are_carried(settings_of, topic_root):
    received: list[Received] = []
    will = Publication(f"{topic_root}/status", b"offline", retain=True)
    with _client(settings_of(f"{topic_root}-tap"), received, [], subscriptions=[f"{topic_root}/#"]) as tap:
        tap.wait_connected(10)
        mortal = _client(settings_of(topic_root), [], [], will=will)
        mortal.start()
        mortal.wait_connected(10)
        mortal.publish_and_wait(Publication(f"{topic_root}/large", b"x" * 1024 * 1024), 10)
        mortal.publish_and_wait(Publication(f"{topic_root}/gone", b"x", retain=True), 10)
        mortal.publish_and_wait(Publication(f"{topic_root}/gone", b"", retain=True), 10)
        mortal._current.abort()
        eventually(lambda: any(each.payload == b"offline" for each in received))
        mortal.stop()
        assert max(len(each.payload) for each in received) == 1024 * 1024
    assert retained(settings_of(), f"{topic_root}/#", marker=f"{topic_root}/end") == {will.topic: b"offline"}


def test_without_the_password_nobody_gets_in(broker):
    for password in ("wrong", None):
        settings = MqttSettings(
            "127.0.0.1", broker.port_v5, username="lc-events" if password else None, password=password, client_id="x"
        )
        with MqttClient(settings, on_message=lambda _: None) as client:
            eventually(lambda: client.last_error)
            assert client.connection == 0


def test_user_and_password_lie_in_a_private_file_and_are_kept(tmp_path):
    state_dir = tmp_path / "state"
    with InternalBroker(state_dir, port_v4=0, port_v5=0) as broker:
        env = dict(line.split("=", 1) for line in broker.env_file.read_text().splitlines())
        assert stat.S_IMODE(broker.env_file.stat().st_mode) == 0o600
        assert stat.S_IMODE((state_dir / "broker.toml").stat().st_mode) == 0o600
        assert sorted(path.name for path in state_dir.iterdir()) == ["broker.env", "broker.toml"]
        settings = MqttSettings.from_url(env["LC_MQTT_URL"], client_id="me")
        assert settings == broker.settings("me")
        assert (settings.username, settings.password) == (env["LC_MQTT_USER"], env["LC_MQTT_PASSWORD"])
        assert MqttSettings.from_url(env["LC_MQTT_URL_3_1_1"]) == broker.settings_3_1_1()
        with MqttClient(settings, on_message=lambda _: None) as client:
            client.wait_connected(10)
    assert not answers(broker.port_v5)
    with InternalBroker(state_dir, port_v4=0, port_v5=0) as again:
        assert again.settings().password == settings.password


def test_a_taken_port_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BrokerError, match=rf"127\.0\.0\.1:{port} \(address already in use\).*external") as failure:
            InternalBroker(tmp_path, port_v4=port, port_v5=0).start()
    assert failure.value.code == "port_taken"
    assert failure.value.exit_code == 6


def test_a_broker_that_dies_is_started_again(tmp_path):
    with InternalBroker(tmp_path, port_v4=0, port_v5=0) as broker:
        connected: list[Connected] = []
        with _client(broker.settings("x"), [], connected) as client:
            client.wait_connected(10)
            os.kill(broker._broker._process.pid, signal.SIGKILL)
            eventually(lambda: len(connected) == 2, 20)
            eventually(lambda: broker.running)
            assert answers(broker.port_v4)


def test_the_broker_ends_with_its_parent_however_that_ends(tmp_path):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with host:
        port = int(host.stdout.readline())
        assert answers(port)
        host.kill()
    eventually(lambda: not answers(port))


def test_an_interrupt_from_the_terminal_leaves_the_broker_to_its_parent(tmp_path):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with host:
        port = int(host.stdout.readline())
        os.killpg(host.pid, signal.SIGINT)
        assert host.stdout.readline() == "interrupted\n"
        os.killpg(host.pid, signal.SIGINT)
        assert host.stdout.readline() == "interrupted\n"
        assert answers(port)
        host.stdin.close()
        assert host.wait(20) == 0
    assert not answers(port)


def test_without_the_extra_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "iotcore", None)
    with pytest.raises(UsageError, match=r"pip install 'lc-events\[broker\]'"):
        InternalBroker(tmp_path)
