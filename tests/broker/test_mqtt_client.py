from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from support.link import Link
from support.mosquitto import Mosquitto
from support.ports import free_port
from support.tap import Tap
from support.waiting import eventually

from lc_events.errors import BrokerError, UsageError
from lc_events.mqtt.client import DISCONNECTED, Connected, MqttClient, Publication, Received
from lc_events.mqtt.oneshot import WITHHELD, request, retained
from lc_events.mqtt.settings import MqttSettings


class Recorder:
    """A client that keeps all it was told."""

    def __init__(self, url: str, client_id: str = "recorder", **options) -> None:
        self.received: list[Received] = []
        self.connected: list[Connected] = []
        self.published: dict[int, str | None] = {}
        self.client = MqttClient(
            MqttSettings.from_url(url, client_id=client_id),
            on_message=options.pop("on_message", self.received.append),
            on_connected=self.connected.append,
            on_published=lambda ticket, error, _: self.published.update({ticket: error}),
            reconnect_seconds=(0.05, 0.2),
            **options,
        )

    def __enter__(self) -> Self:
        self.client.start()
        self.client.wait_connected(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop()

    def payloads(self) -> list[bytes]:
        return [received.payload for received in self.received]

    def wait_for(self, *payloads: bytes) -> None:
        eventually(lambda: self.payloads()[-len(payloads) :] == list(payloads), what=f"{payloads} in {self.payloads()}")


def test_messages_come_in_order_with_all_their_properties(shared_mosquitto, topic_root):
    with (
        Recorder(shared_mosquitto.url, topic_root, subscriptions=[f"{topic_root}/in/#"]) as recorder,
        Tap(shared_mosquitto.port, f"{topic_root}/out") as tap,
    ):
        tap.publish_all([(f"{topic_root}/in/{i % 3}", str(i)) for i in range(50)])
        tap.publish(f"{topic_root}/in/x", b"\x00\xff", response_topic="re/ply", correlation=b"c1")
        eventually(lambda: len(recorder.received) == 51)
        assert recorder.payloads()[:50] == [str(i).encode() for i in range(50)]
        last = recorder.received[-1]
        assert (last.topic, last.payload, last.qos, last.retain, last.dup) == (
            f"{topic_root}/in/x",
            b"\x00\xff",
            1,
            False,
            False,
        )
        assert (last.response_topic, last.correlation, last.connection) == ("re/ply", b"c1", 1)
        answer = Publication(f"{topic_root}/out", b"{}", correlation=b"c2", response_topic="x/y")
        ticket = recorder.client.publish(answer)
        heard = tap.wait_for_topic(f"{topic_root}/out")
        assert (heard.payload, heard.correlation, heard.response_topic) == (b"{}", b"c2", "x/y")
        assert eventually(lambda: recorder.published) == {ticket: None}
        assert recorder.connected == [Connected(connection=1, session_present=False, protocol=5)]


def test_what_was_not_acknowledged_comes_again_with_dup_after_a_restart(mosquitto):
    with (
        Recorder(mosquitto.url, subscriptions=["in"]) as recorder,
        Recorder(mosquitto.url, "sender", clean=True) as sender,
    ):
        for payload in (b"1", b"2", b"3"):
            sender.client.publish_and_wait(Publication("in", payload), 10)
        recorder.wait_for(b"1", b"2", b"3")
        recorder.client.ack(recorder.received[0])
        sender.client.publish_and_wait(Publication("in", b"4"), 10)  # the broker has read the acknowledgement by then
        recorder.wait_for(b"4")
        mosquitto.restart()
        eventually(lambda: len(recorder.received) == 7)
        recorder.wait_for(b"2", b"3", b"4")
        assert [received.dup for received in recorder.received[4:]] == [True, True, True]
        assert [received.connection for received in recorder.received[4:]] == [2, 2, 2]
        assert recorder.connected[1] == Connected(connection=2, session_present=True, protocol=5)


def test_an_acknowledgement_from_before_a_reconnect_confirms_nothing(mosquitto):
    with Recorder(mosquitto.url, subscriptions=["in"]) as recorder:
        request_ = Publication("in", b"old")
        recorder.client.publish_and_wait(request_, 10)
        recorder.wait_for(b"old")
        mosquitto.restart()
        recorder.wait_for(b"old", b"old")
        recorder.client.ack(recorder.received[0])
        recorder.client.publish_and_wait(replace(request_, payload=b"new"), 10)
        recorder.wait_for(b"old", b"new")
        mosquitto.restart()
        recorder.wait_for(b"old", b"new")
        eventually(lambda: len(recorder.received) == 5)
        for received in recorder.received[3:]:
            recorder.client.ack(received)
        recorder.client.publish_and_wait(replace(request_, payload=b"last"), 10)
        mosquitto.restart()
        eventually(lambda: recorder.client.connection == 4)
        recorder.wait_for(b"last", b"last")
        assert len(recorder.received) == 7


def test_messages_that_came_while_we_were_away_are_delivered(mosquitto):
    with Recorder(mosquitto.url, subscriptions=["in/+"]) as recorder:
        recorder.client.stop()
        with Tap(mosquitto.port, "none") as tap:
            tap.publish_all([("in/x", str(i)) for i in range(20)])
    with Recorder(mosquitto.url, subscriptions=["in/+"]) as recorder:
        eventually(lambda: len(recorder.received) == 20)
        assert recorder.payloads() == [str(i).encode() for i in range(20)]
        assert recorder.connected[0].session_present


def test_a_publication_for_one_connection_does_not_leave_on_the_next(mosquitto):
    with Recorder(mosquitto.url, subscriptions=["in"]) as recorder:
        recorder.client.publish(Publication("in", b"first"), connection=1)
        recorder.wait_for(b"first")
        mosquitto.restart()
        eventually(lambda: len(recorder.connected) == 2)
        with pytest.raises(BrokerError) as raised:
            recorder.client.publish(Publication("in", b"late"), connection=1)
        assert raised.value.code == "not_connected"
        recorder.client.publish(Publication("in", b"next"), connection=2)
        eventually(lambda: b"next" in recorder.payloads())
        assert b"late" not in recorder.payloads()


def test_a_clean_client_has_no_session(mosquitto):
    with Recorder(mosquitto.url, clean=True, subscriptions=["in"]):
        pass
    with Recorder(mosquitto.url, subscriptions=["in"]) as recorder:
        assert not recorder.connected[0].session_present


def test_a_broker_that_forgot_the_session_is_subscribed_to_again(tmp_path):
    with Mosquitto(tmp_path) as broker, Recorder(broker.url, subscriptions=["in"]) as recorder:
        broker.kill()
        broker.start()
        eventually(lambda: len(recorder.connected) == 2)
        assert not recorder.connected[1].session_present
        recorder.client.wait_connected(10)
        recorder.client.publish_and_wait(Publication("in", b"x"), 10)
        recorder.wait_for(b"x")


def test_every_ticket_is_settled_once_also_when_the_broker_dies(tmp_path):
    settled: list[tuple[int, str | None]] = []
    with Mosquitto(tmp_path) as broker:
        client = MqttClient(
            MqttSettings.from_url(broker.url, client_id="publisher"),
            on_message=lambda _: None,
            on_published=lambda ticket, error, _: settled.append((ticket, error)),
            reconnect_seconds=(0.05, 0.2),
        )
        client.start()
        client.wait_connected(10)
        broker.pause()
        tickets = [client.publish(Publication("out", b"x" * 100)) for _ in range(500)]
        broker.kill()
        eventually(lambda: len(settled) == 500)
        assert sorted(settled) == [(ticket, DISCONNECTED) for ticket in tickets]
        with pytest.raises(BrokerError) as refusal:
            client.publish(Publication("out", b""))
        assert refusal.value.code == "not_connected"
        broker.start()
        client.wait_connected(10)
        with Tap(broker.port, "out") as tap:
            client.publish_and_wait(Publication("out", b"again"), 10)
            tap.wait_for_topic("out")
            assert [message.payload for message in tap.messages] == [b"again"], "paho sent something by itself"
        client.stop()
        assert len(settled) == 500


def test_publications_beyond_window_and_queue_are_refused_and_memory_stays_bounded(tmp_path):
    with Mosquitto(tmp_path) as broker, Recorder(broker.url, window=10, max_waiting=5) as recorder:
        broker.pause()
        for _ in range(15):
            recorder.client.publish(Publication("out", b"x"))
        with pytest.raises(BrokerError) as refusal:
            recorder.client.publish(Publication("out", b"x"))
        assert refusal.value.code == "window_full"
        broker.resume()
        eventually(lambda: len(recorder.published) == 15)
        assert set(recorder.published.values()) == {None}


def test_a_publication_too_large_for_the_broker_is_refused_and_harms_nothing(tmp_path):
    with Mosquitto(tmp_path, extra="max_packet_size 20000") as broker, Recorder(broker.url) as recorder:
        with pytest.raises(BrokerError, match="out: 20000 bytes are too large") as refusal:
            recorder.client.publish(Publication("out", b"x" * 20000))
        assert refusal.value.code == "too_large"
        recorder.client.publish_and_wait(Publication("out", b"x" * 10000), 10)
        assert recorder.client.connection == 1


def test_with_qos_0_a_ticket_is_settled_once_the_message_is_on_its_way(shared_mosquitto, topic_root):
    with (
        Recorder(shared_mosquitto.url, topic_root) as recorder,
        Tap(shared_mosquitto.port, topic_root) as tap,
    ):
        ticket = recorder.client.publish(Publication(topic_root, b"x", qos=0))
        assert tap.wait_for_topic(topic_root).qos == 0
        assert eventually(lambda: recorder.published) == {ticket: None}


def test_a_publication_denied_by_the_acl_is_reported_in_words(tmp_path):
    (tmp_path / "acl").write_text("topic read #\ntopic write allowed\n")
    with Mosquitto(tmp_path, extra=f"acl_file {tmp_path / 'acl'}") as broker, Recorder(broker.url) as recorder:
        denied = recorder.client.publish(Publication("forbidden", b"x"))
        allowed = recorder.client.publish(Publication("allowed", b"x"))
        eventually(lambda: len(recorder.published) == 2)
        assert recorder.published[allowed] is None
        assert recorder.published[denied] == "not authorized (0x87): the broker's ACL forbids it"
        with pytest.raises(BrokerError, match="ACL forbids"):
            recorder.client.publish_and_wait(Publication("forbidden", b"x"), 10)


def test_a_denied_subscription_is_reported_in_words(tmp_path):
    plugins = [*Path("/usr/lib").glob("*/mosquitto_dynamic_security.so"), *Path("/usr/lib").glob("mosquitto_dyn*.so")]
    if not plugins:
        pytest.skip("an ACL file of Mosquitto 2 denies no subscription, and its dynamic security plugin is not there")
    may_subscribe = {"acltype": "subscribePattern", "topic": "allowed", "allow": True}
    rules = {
        "defaultACLAccess": {"publishClientSend": True, "publishClientReceive": True, "subscribe": False},
        "roles": [{"rolename": "all", "acls": [may_subscribe]}],
        "groups": [{"groupname": "all", "roles": [{"rolename": "all"}]}],
        "anonymousGroup": "all",
        "clients": [],
    }
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    plugin = f"plugin {plugins[0]}\nplugin_opt_config_file {tmp_path / 'rules.json'}"
    with Mosquitto(tmp_path, extra=plugin) as broker:
        client = MqttClient(
            MqttSettings.from_url(broker.url, client_id="me"),
            subscriptions=["allowed", "secret/me"],
            on_message=lambda _: None,
        )
        client.start()
        with pytest.raises(BrokerError, match="denies subscriptions: secret/me: not authorized"):
            client.wait_connected(10)
        assert list(client.refused_subscriptions) == ["secret/me"]
        assert client.connected
        client.stop()


def test_the_will_is_published_retained_when_the_client_dies_and_not_when_it_stops(shared_mosquitto, topic_root):
    will = Publication(f"{topic_root}/status", b"offline", retain=True)
    with Tap(shared_mosquitto.port, f"{topic_root}/#") as tap:
        with Recorder(shared_mosquitto.url, topic_root, will=lambda: will) as recorder:
            recorder.client.stop(Publication(will.topic, b"goodbye", retain=True))
            tap.wait_for(lambda message: message.payload == b"goodbye")
        recorder = Recorder(shared_mosquitto.url, topic_root, will=will)
        recorder.client.start()
        recorder.client.wait_connected(10)
        assert [message.payload for message in tap.messages] == [b"goodbye"]
        recorder.client._current.abort()
        tap.wait_for(lambda message: message.payload == b"offline")
        recorder.client.stop()
    settings = MqttSettings.from_url(shared_mosquitto.url)
    assert retained(settings, will.topic, marker=f"{topic_root}/end") == {will.topic: b"offline"}


def test_a_will_may_be_another_one_for_each_connection(mosquitto):
    wills = iter(range(1, 100))
    with Tap(mosquitto.port, "status") as tap:
        recorder = Recorder(mosquitto.url, will=lambda: Publication("status", b"%d" % next(wills)))
        with recorder:
            recorder.client._current.abort()
            eventually(lambda: len(recorder.connected) == 2)
            recorder.client._current.abort()
            tap.wait_for_count(2)
        assert [message.payload for message in tap.messages] == [b"1", b"2"]


def test_a_farewell_to_a_broker_that_hangs_does_not_hang_us(tmp_path):
    with Mosquitto(tmp_path) as broker, Recorder(broker.url) as recorder:
        broker.pause()
        recorder.client.stop(Publication("status", b"offline"), timeout=0.5)
        assert not recorder.client._thread.is_alive()


def test_a_callback_that_raises_is_logged_and_its_message_comes_again(mosquitto, caplog):
    seen: list[bytes] = []

    def fail_once(received: Received) -> None:
        seen.append(received.payload)
        if seen.count(b"bad") == 1 and received.payload == b"bad":
            raise ValueError("not today")
        recorder.client.ack(received)

    recorder = Recorder(mosquitto.url, subscriptions=["in"], on_message=fail_once)
    with recorder, caplog.at_level(logging.ERROR, "lc_events.mqtt"):
        for payload in (b"bad", b"good"):
            recorder.client.publish_and_wait(Publication("in", payload), 10)
        eventually(lambda: seen == [b"bad", b"good"])
        assert "not today" in caplog.text
        recorder.client.publish_and_wait(Publication("in", b"good too"), 10)
        mosquitto.restart()
        eventually(lambda: seen == [b"bad", b"good", b"good too", b"bad"])


def test_callbacks_may_publish_and_wait_for_locks_that_publishers_hold(shared_mosquitto, topic_root):
    lock = threading.Lock()
    tickets: dict[int, str] = {}
    settled: set[int] = set()

    def on_published(ticket: int, error: str | None, _reason: int | None) -> None:
        with lock:
            assert error is None
            assert ticket in tickets
            settled.add(ticket)

    def publish(topic: str, count: int) -> None:
        for _ in range(count):
            with lock:
                tickets[client.publish(Publication(topic, b"x"))] = topic

    def on_message(received: Received) -> None:
        if len(settled) < 600:
            publish(f"{topic_root}/reply", 1)
        client.ack(received)

    client = MqttClient(
        MqttSettings.from_url(shared_mosquitto.url, client_id=topic_root),
        subscriptions=[f"{topic_root}/in"],
        on_message=on_message,
        on_published=on_published,
        max_waiting=2000,
    )
    client.start()
    client.wait_connected(10)
    threads = [threading.Thread(target=publish, args=(f"{topic_root}/in", 100)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    eventually(lambda: len(settled) == 600)
    client.stop()
    assert set(tickets) == settled


def test_two_clients_with_one_id_are_told_why(shared_mosquitto, topic_root):
    with (
        Recorder(shared_mosquitto.url, topic_root) as first,
        Recorder(shared_mosquitto.url, topic_root),
    ):
        eventually(lambda: first.client.last_error or len(first.connected) > 1)
        eventually(lambda: "same client id" in (first.client.last_error or ""))


def test_a_broker_that_is_not_there_is_named_and_awaited(tmp_path):
    broker = Mosquitto(tmp_path, port=free_port())
    recorder = Recorder(broker.url, subscriptions=["in"])
    recorder.client.start()
    with pytest.raises(BrokerError, match=f"{broker.port}: connection refused"):
        recorder.client.wait_connected(0.3)
    with broker:
        recorder.client.wait_connected(10)
        assert recorder.client.last_error is None
        recorder.client.stop()


def test_who_asks_once_is_told_that_no_broker_is_there_and_the_log_is_not(caplog):
    with pytest.raises(BrokerError, match="connection refused"):
        retained(MqttSettings("127.0.0.1", free_port()), "kept", marker="end", timeout=0.3)
    assert caplog.messages == []


def test_a_host_that_cannot_be_resolved_is_named():
    client = MqttClient(MqttSettings("no-such-host.invalid", client_id="x"), on_message=lambda _: None)
    client.start()
    eventually(lambda: client.last_error, 30)
    with pytest.raises(BrokerError, match=r"no-such-host\.invalid:1883: the host's name cannot be resolved"):
        client.wait_connected(0)
    client.stop()


def test_a_wrong_password_is_said_at_once_in_words_and_not_shown(tmp_path):
    (tmp_path / "password").write_text("")
    settings = f"password_file {tmp_path / 'password'}"
    with Mosquitto(tmp_path, anonymous=False, extra=settings) as broker:
        url = broker.url.replace("//", "//lc:topsecret@")
        for clean in (False, True):
            client = MqttClient(MqttSettings.from_url(url, client_id="x"), clean=clean, on_message=lambda _: None)
            client.start()
            with pytest.raises(BrokerError, match="does not accept this user, password or client id") as refusal:
                client.wait_connected(30)
            assert "topsecret" not in str(refusal.value)
            assert "lc@127.0.0.1" in str(refusal.value)
            client.stop()


def test_a_session_without_a_client_id_is_a_usage_error():
    with pytest.raises(UsageError, match="client id"):
        MqttClient(MqttSettings(), on_message=lambda _: None)


def test_publish_and_wait_in_a_callback_is_refused(shared_mosquitto, topic_root, caplog):
    def on_message(_: Received) -> None:
        recorder.client.publish_and_wait(Publication(f"{topic_root}/out", b""), 10)

    recorder = Recorder(shared_mosquitto.url, topic_root, subscriptions=[f"{topic_root}/in"], on_message=on_message)
    with recorder:
        recorder.client.publish_and_wait(Publication(f"{topic_root}/in", b""), 10)
        eventually(lambda: "would wait for itself" in caplog.text)


def test_a_question_and_its_answer_in_one_call(shared_mosquitto, topic_root):
    answers = f"{topic_root}/answer"

    def answer(received: Received) -> None:
        client.publish(Publication(answers, b"other"))
        client.publish(Publication(answers, received.payload.upper(), correlation=received.correlation))
        client.ack(received)

    client = MqttClient(
        MqttSettings.from_url(shared_mosquitto.url, client_id=topic_root),
        subscriptions=[f"{topic_root}/ask"],
        on_message=answer,
    )
    settings = MqttSettings.from_url(shared_mosquitto.url)
    question = Publication(f"{topic_root}/ask", b"hello", correlation=b"1", response_topic=answers)
    with client:
        client.wait_connected(10)
        got = request(settings, question, answers, accepts=lambda received: received.correlation == b"1")
        assert got.payload == b"HELLO"
    with pytest.raises(BrokerError, match="no answer on") as failure:
        request(settings, question, answers, timeout=0.3)
    assert failure.value.code == "no_answer"


def test_a_message_that_is_retained_while_we_are_connected_says_so(shared_mosquitto, topic_root):
    with (
        Recorder(shared_mosquitto.url, topic_root, subscriptions=[f"{topic_root}/in"]) as recorder,
        Tap(shared_mosquitto.port, f"{topic_root}/out") as tap,
    ):
        tap.publish(f"{topic_root}/in", b"live", retain=True)
        tap.publish(f"{topic_root}/in", b"other")
        recorder.wait_for(b"live", b"other")
        assert [received.retain for received in recorder.received] == [True, False]
        tap.publish(f"{topic_root}/in", b"", retain=True)


def test_retained_messages_are_collected_by_topic(shared_mosquitto, topic_root):
    with Tap(shared_mosquitto.port, "none") as tap:
        tap.publish_all([(f"{topic_root}/{i}", str(i)) for i in range(30)], retain=True)
        tap.publish(f"{topic_root}/3", b"", retain=True)
    settings, marker = MqttSettings.from_url(shared_mosquitto.url), f"{topic_root}/end"
    found = retained(settings, f"{topic_root}/+", marker=marker)
    assert found == {f"{topic_root}/{i}": str(i).encode() for i in range(30) if i != 3}
    assert retained(settings, f"{topic_root}/none/#", marker=marker) == {}


class BreakingAtPublish:
    """Breaks so many connections, each when its client publishes."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, data: bytes) -> bool:
        if not self.left or data[0] >> 4 != 3:
            return False
        self.left -= 1
        return True


def test_a_connection_that_breaks_while_retained_messages_are_collected_is_replaced(shared_mosquitto, topic_root):
    with Tap(shared_mosquitto.port, "none") as tap:
        tap.publish(f"{topic_root}/kept", b"10", retain=True)
    breaking = BreakingAtPublish(times=1)
    with Link(shared_mosquitto.port, breaking) as link:
        settings = MqttSettings.from_url(f"mqtt://127.0.0.1:{link.port}")
        assert retained(settings, f"{topic_root}/kept", marker=f"{topic_root}/end") == {f"{topic_root}/kept": b"10"}
    assert breaking.left == 0


def test_a_broker_whose_connections_break_withholds_nothing(shared_mosquitto, topic_root):
    with Link(shared_mosquitto.port, BreakingAtPublish(times=1000)) as link:
        settings = MqttSettings.from_url(f"mqtt://127.0.0.1:{link.port}")
        with pytest.raises(BrokerError) as failure:
            retained(settings, f"{topic_root}/kept", marker=f"{topic_root}/end", timeout=1.0)
    assert failure.value.code not in WITHHELD


def test_a_broker_that_does_not_send_the_marker_withholds_what_it_retains(tmp_path):
    (tmp_path / "acl").write_text("topic read #\n")
    with Mosquitto(tmp_path, extra=f"acl_file {tmp_path / 'acl'}") as broker, pytest.raises(BrokerError) as failure:
        retained(MqttSettings.from_url(broker.url), "kept", marker="end", timeout=0.5)
    assert failure.value.code == "no_answer"
