"""What happens where the broker does not speak MQTT 5; a few sockets stand in for brokers that are hard to get."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from support.waiting import eventually

from lc_events.errors import BrokerError
from lc_events.mqtt.client import Connected, MqttClient, Publication
from lc_events.mqtt.settings import MqttSettings

_PROTOCOL_LEVEL = 8
"""Where CONNECT says the version, behind a fixed header of two bytes and the name MQTT."""


@contextmanager
def answering(answer: Callable[[int], bytes | None]) -> Iterator[tuple[int, list[int]]]:
    """A server that answers CONNECT of a protocol level with `answer(level)`; None: not at all."""
    levels: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    connect = peer.recv(4096)
                    levels.append(connect[_PROTOCOL_LEVEL])
                    reply = answer(levels[-1])
                    if reply is None or reply.endswith(b"\x00"):
                        peer.sendall(reply or b"")
                        while peer.recv(4096):
                            pass
                    else:
                        peer.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], levels
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _client(port: int, connected: list[Connected]) -> MqttClient:
    return MqttClient(
        MqttSettings("127.0.0.1", port, client_id="x"),
        on_message=lambda _: None,
        on_connected=connected.append,
        connect_timeout_seconds=0.5,
        reconnect_seconds=(0.05, 0.1),
    )


@pytest.mark.parametrize(
    "refusal", [b"\x20\x02\x00\x01", b"", None], ids=["it says so", "it closes the socket", "it does not answer"]
)
def test_a_broker_that_speaks_only_3_1_1_is_spoken_to_in_3_1_1(refusal):
    connected: list[Connected] = []
    with answering(lambda level: refusal if level == 5 else b"\x20\x02\x01\x00") as (port, levels):
        with _client(port, connected) as client:
            client.wait_connected(10)
            assert connected == [Connected(connection=1, session_present=True, protocol=4)]
        assert levels == [5, 4]


def test_a_refusal_of_the_user_is_no_reason_to_try_an_older_protocol():
    with answering(lambda _: b"\x20\x03\x00\x87\x00") as (port, levels), _client(port, []) as client:
        with pytest.raises(BrokerError, match="does not accept this user"):
            client.wait_connected(10)
        assert set(levels) == {5}


def test_a_server_that_is_no_broker_is_named_as_such():
    with answering(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as (port, _), _client(port, []) as client:
        eventually(lambda: client.last_error)
        assert "is it MQTT at all?" in (client.last_error or "")


@pytest.mark.parametrize(
    ("reason", "refusal"),
    [
        (b"", None),
        (b"\x00", None),
        (b"\x00\x00", None),
        (b"\x10", None),
        (b"\x10\x00", None),
        (b"\x87", 0x87),
        (b"\x97\x00", 0x97),
    ],
)
def test_every_form_of_a_puback_is_understood(reason, refusal):
    """MQTT 5 section 3.4.2: the reason may be left out, and the length of the properties too."""
    answers: list[tuple[str | None, int | None]] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"\x20\x03\x00\x00\x00")
                publish = peer.recv(4096)
                mid = publish[publish.index(b"topic") + len(b"topic") :][:2]
                peer.sendall(b"\x40" + bytes([2 + len(reason)]) + mid + reason)
                peer.recv(4096)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = MqttClient(
            MqttSettings("127.0.0.1", server.getsockname()[1]),
            on_message=lambda _: None,
            on_published=lambda _, *answer: answers.append(answer),
            clean=True,
        )
        with client:
            client.wait_connected(10)
            client.publish(Publication("topic", b"payload"))
            eventually(lambda: answers)
        thread.join(10)
    [(error, code)] = answers
    assert code == refusal
    assert (error is not None) == (refusal is not None)
