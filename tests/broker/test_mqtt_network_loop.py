"""The network loop of a client under load: nothing that was queued is forgotten, whoever queued it."""

from __future__ import annotations

import gc
import queue
import threading

from support.certificates import issued, self_signed
from support.mosquitto import Mosquitto
from support.waiting import eventually

from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.packets import Publication, Received
from lc_events.mqtt.settings import MqttSettings

THREADS, EACH = 4, 1500


def settings(url: str, name: str, **more) -> MqttSettings:
    return MqttSettings.from_url(url, client_id=name, **more)


class Echo:
    """Acknowledges what it hears on a thread of its own, and answers it."""

    def __init__(self, url: str, topic: str) -> None:
        self.heard: list[bytes] = []
        self._todo: queue.Queue[Received | None] = queue.Queue()
        self.client = MqttClient(
            settings(url, f"echo-{topic.partition('/')[0]}"), subscriptions=[topic], on_message=self._todo.put
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Echo:  # noqa: PYI034
        self.client.start()
        self.client.wait_connected(10)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._todo.put(None)
        self._thread.join(10)
        self.client.stop()

    def _run(self) -> None:
        while (received := self._todo.get()) is not None:
            self.heard.append(received.payload)
            self.client.ack(received)


def test_what_many_threads_publish_and_another_acknowledges_is_all_confirmed(shared_mosquitto, topic_root):
    room = threading.Semaphore(100)
    confirmed: list[str | None] = []

    def note(_ticket: int, error: str | None, _reason: int | None) -> None:
        confirmed.append(error)
        room.release()

    sender = MqttClient(
        settings(shared_mosquitto.url, f"sender-{topic_root}"), on_message=lambda _: None, on_published=note, clean=True
    )
    with Echo(shared_mosquitto.url, f"{topic_root}/load") as echo, sender:
        sender.wait_connected(10)

        def publish(number: int) -> None:
            for count in range(EACH):
                assert room.acquire(timeout=30)
                sender.publish(Publication(f"{topic_root}/load", f"{number}.{count}".encode()))

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        eventually(lambda: len(confirmed) == THREADS * EACH, 30)
        eventually(lambda: len(echo.heard) == THREADS * EACH, 30)
    assert set(confirmed) == {None}
    for number in range(THREADS):
        own = [payload for payload in echo.heard if payload.startswith(f"{number}.".encode())]
        assert own == [f"{number}.{count}".encode() for count in range(EACH)]


def test_messages_of_all_sizes_come_whole_over_tls(tmp_path):
    authority = self_signed(tmp_path / "ca", "authority")
    server = issued(tmp_path / "ca", "server", authority)
    listener = f"cafile {authority.cert}\ncertfile {server.cert}\nkeyfile {server.key}"
    with Mosquitto(tmp_path / "mosquitto", listener=listener) as broker:
        heard: queue.Queue[Received] = queue.Queue()
        url = broker.url.replace("mqtt://", "mqtts://")
        client = MqttClient(
            settings(url, "tls", ca_file=authority.cert), subscriptions=["sizes"], on_message=heard.put, clean=True
        )
        sizes = [0, 1, 125, 16_383, 16_384, 65_535, 65_536, 65_537, 300_000, 1_048_576]
        with client:
            client.wait_connected(10)
            for size in sizes:
                client.publish(Publication("sizes", bytes([size % 251]) * size))
            for size in sizes:
                received = heard.get(timeout=10)
                client.ack(received)
                assert received.payload == bytes([size % 251]) * size


def garbage_of(topic: str) -> list[object]:
    """What only the garbage collector frees and that knows a topic: other clients of the process have others."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return [each for each in gc.garbage if any(name in (topic, topic.encode()) for name in names_in(each))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def names_in(container: object) -> list[str | bytes]:
    return [each for each in gc.get_referents(container) if isinstance(each, str | bytes)]


def test_messages_leave_no_cycles_to_the_garbage_collector(shared_mosquitto, topic_root):
    received: list[Received] = []
    client = MqttClient(
        settings(shared_mosquitto.url, topic_root), subscriptions=[topic_root], on_message=received.append, clean=True
    )
    with client:
        client.wait_connected(10)
        gc.collect()
        gc.disable()
        try:
            for number in range(200):
                client.publish(Publication(topic_root, str(number).encode()))
            eventually(lambda: len(received) == 200)
            found = garbage_of(topic_root)
        finally:
            gc.enable()
    assert found == []
