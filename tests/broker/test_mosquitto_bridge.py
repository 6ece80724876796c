from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.link import Link
from support.mosquitto import Mosquitto
from support.prepared import TESTER, Prepared, give_bridge_password, prepare
from support.tap import Tap, Tapped
from support.visitor import MQTT_3_1_1, MQTT_5, Visitor
from support.waiting import eventually

from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics

TOPICS = Topics()
DOWN = TOPICS.down("edge1", "lifelonglearningjob", "default", "job1")
UP = TOPICS.up("edge1", "lifelonglearningjob", "default", "job1")
EVENT = TOPICS.event_job("edge1", "default", "job1")
STATE = TOPICS.state_job("edge1", "default", "job1")
LINK = TOPICS.link("edge1")
MANY = 1_500


class TwoSides:
    """A cloud's broker and the broker of edge1, started, with a link between them that can be cut."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.cloud = prepare("cloud", folder / "cloud", "edge1", "edge2")
        give_bridge_password(self.cloud, folder / "edge1", "edge1")
        self.link = stack.enter_context(Link(self.cloud.port))
        self.edge = prepare("edge", folder / "edge1", "edge1", options=("--cloud", f"127.0.0.1:{self.link.port}"))
        text = self.edge.config.read_text()
        assert text.count("restart_timeout 1 15") == 2
        self.edge.config.write_text(text.replace("restart_timeout 1 15", "restart_timeout 1 2"))  # tests are impatient
        self.cloud_broker = stack.enter_context(self.cloud.broker())
        self.edge_broker = stack.enter_context(self.edge.broker())
        self._stack = stack

    def tap(self, side: Prepared, *filters: str) -> Tap:
        """Listen on one side as one who may read everything."""
        return self._stack.enter_context(Tap(side.port, *filters, **side.login(TESTER)))

    def wait_linked(self) -> None:
        """Wait until both connections of the bridge are there and carry messages."""
        with Tap(self.cloud.port, "sedna/#", **self.cloud.login(TESTER)) as cloud:
            cloud.wait_for(is_link("1"), 30)
        with Tap(self.edge.port, "sedna/#", **self.edge.login(TESTER)) as edge:
            _round_trip(self.cloud, edge)


def _round_trip(cloud: Prepared, edge: Tap) -> None:
    """The connection downwards shows only by what it carries, and what is sent before its first time is not kept."""
    with Tap(cloud.port, "none", **cloud.login(TESTER)) as speaker:
        question = TOPICS.ask("edge1", "state")
        eventually(lambda: speaker.publish(question, b"") or edge.of(question), 30)


def is_link(payload: str):
    return lambda message: message.topic == LINK and message.payload == payload.encode()


def numbers(messages: list[Tapped], topic: str) -> list[int]:
    return [int(message.payload) for message in messages if message.topic == topic]


def count_from(first: int, topic: str, number: int = MANY) -> list[tuple[str, str]]:
    return [(topic, str(n)) for n in range(first, first + number)]


@pytest.fixture
def sides(tmp_path) -> Iterator[TwoSides]:
    with ExitStack() as stack:
        sides = TwoSides(tmp_path, stack)
        sides.wait_linked()
        yield sides


def test_what_is_said_while_the_link_is_cut_arrives_later_in_order_and_whole_in_both_directions(sides):
    cloud, edge = sides.tap(sides.cloud, "sedna/#"), sides.tap(sides.edge, "sedna/#")
    sides.link.cut()
    cloud.wait_for(is_link("0"), 30)
    edge.wait_for(is_link("0"), 30)
    cloud.publish_all(count_from(0, DOWN))
    edge.publish_all(count_from(0, UP))
    assert not edge.of(DOWN)
    assert not cloud.of(UP)
    sides.link.mend()
    edge.wait_for_count(MANY, lambda message: message.topic == DOWN, 60)
    cloud.wait_for_count(MANY, lambda message: message.topic == UP, 60)
    assert numbers(edge.messages, DOWN) == list(range(MANY))
    assert numbers(cloud.messages, UP) == list(range(MANY))


def test_the_state_of_the_link_is_on_both_sides_and_ends_with_the_truth(sides):
    """The edge's own copy of the 0, if it went up with what had waited, would come after the 1 and stay there."""
    cloud, edge = sides.tap(sides.cloud, "sedna/#"), sides.tap(sides.edge, "sedna/#")
    for time in range(1, 3):
        sides.link.cut()
        cloud.wait_for_count(time, is_link("0"), 30)
        edge.wait_for_count(time, is_link("0"), 30)
        edge.publish_all(count_from(0, UP, 100))
        sides.link.mend()
        cloud.wait_for_count(time * 100, lambda message: message.topic == UP, 60)
        cloud.wait_for_count(time + 1, is_link("1"), 30)
        edge.wait_for_count(time + 1, is_link("1"), 30)
        edge.publish(EVENT, b"last")
        cloud.wait_for_count(time, lambda message: message.topic == EVENT, 30)
        for side in (sides.cloud, sides.edge):
            with Tap(side.port, LINK, **side.login(TESTER)) as late:
                assert late.wait_for_topic(LINK).payload == b"1"


def test_only_this_nodes_topics_cross_and_each_in_one_direction(sides):
    cloud, edge = sides.tap(sides.cloud, "#"), sides.tap(sides.edge, "#")
    topics = [
        topic
        for node in ("edge1", "edge2")
        for topic in (
            TOPICS.down(node, "dataset", "default", "d"),
            TOPICS.down_ack(node),
            TOPICS.work(node, "w1"),
            TOPICS.ask(node, "history"),
            TOPICS.up(node, "dataset", "default", "d"),
            TOPICS.event_job(node, "default", "job1"),
            TOPICS.errors(node),
            TOPICS.answer(node, "me"),
            TOPICS.status(node),
            TOPICS.state_job(node, "default", "job1"),
            TOPICS.state_model(node, "default", "job1"),
            TOPICS.state_dataset(node, "default", "d"),
            TOPICS.state_head(node, "default", "job1"),
            TOPICS.outbox(node),
            TOPICS.worker_info(node, "w1"),
            TOPICS.worker_done(node, "w1"),
            TOPICS.tick(node),
        )
    ]
    topics += [TOPICS.apply("r1"), TOPICS.answer("gm", "me"), "other/topic"]
    cloud.publish_all([(topic, b"from the cloud") for topic in topics])
    edge.publish_all([(topic, b"from the edge") for topic in topics])
    cloud.publish(DOWN, b"last")
    edge.publish(UP, b"last")
    edge.wait_for_topic(DOWN)
    cloud.wait_for_topic(UP)
    came_down = {message.topic for message in edge.messages if message.payload == b"from the cloud"}
    came_up = {message.topic for message in cloud.messages if message.payload == b"from the edge"}
    assert came_down == set(topics[:4])
    assert came_up == set(topics[4:13])
    assert sorted(message.topic for message in edge.messages if message.payload == b"from the edge") == sorted(topics)


@pytest.mark.parametrize("protocol", [MQTT_3_1_1, MQTT_5], ids=["3.1.1", "5"])
def test_the_cloud_does_not_let_a_bridge_speak_for_another_node(sides, protocol):
    login = sides.cloud.login("bridge-edge1")
    tap = sides.tap(sides.cloud, "sedna/#")
    with Visitor(sides.cloud.port, protocol, client_id="not-the-bridge", **login) as visitor:
        visitor.subscribe("#", "sedna/down/edge2/#")
        for topic in (
            TOPICS.up("edge2", "dataset", "default", "d"),
            TOPICS.status("edge2"),
            TOPICS.tick("edge1"),
            DOWN,
        ):
            visitor.publish(topic, "spoofed")
        visitor.publish(UP, "own")
        tap.publish(TOPICS.down("edge2", "dataset", "default", "d"), b"")
        visitor.subscribe("the/end")
        tap.wait_for(lambda message: message.payload == b"own")
        assert all(message.payload != b"spoofed" for message in tap.messages)
        assert not [topic for topic in visitor.heard.topics if "edge2" in topic]


def test_properties_and_the_retain_flag_survive_from_the_edge_to_the_cloud(sides):
    cloud, edge = sides.tap(sides.cloud, "sedna/#"), sides.tap(sides.edge, "sedna/#")
    topic = TOPICS.answer("edge1", "me")
    edge.publish(topic, b"{}", correlation=b"7", response_topic="sedna/answer/edge1/you")
    edge.publish(STATE, b"{}", retain=True)
    answer = cloud.wait_for_topic(topic)
    assert (answer.correlation, answer.response_topic, answer.qos) == (b"7", "sedna/answer/edge1/you", 1)
    cloud.wait_for_topic(STATE)
    with Tap(sides.cloud.port, STATE, **sides.cloud.login(TESTER)) as late:
        assert late.wait_for_topic(STATE).retain


def test_what_the_cloud_retains_says_so_to_a_controller_at_the_edge_while_it_is_connected(sides):
    cloud, received = sides.tap(sides.cloud, "none"), []
    settings = MqttSettings(port=sides.edge.port, **sides.edge.login(TESTER))
    with MqttClient(settings, subscriptions=[DOWN], on_message=received.append, clean=True) as client:
        client.wait_connected(10)
        cloud.publish(DOWN, b"retained", retain=True)
        cloud.publish(DOWN, b"live")
        eventually(lambda: len(received) == 2)
        assert [(each.payload, each.retain) for each in received] == [(b"retained", True), (b"live", False)]


def test_what_the_cloud_says_while_the_edges_broker_is_down_waits_for_it(sides):
    cloud = sides.tap(sides.cloud, "none")
    for first, end in ((0, sides.edge_broker.stop), (MANY, sides.edge_broker.kill)):
        sides.edge_broker.save()
        end()
        cloud.publish_all(count_from(first, DOWN))
        # the session is clean, so this tap must be there before the bridge is
        sides.link.cut()
        sides.edge_broker.start()
        with Tap(sides.edge.port, DOWN, **sides.edge.login(TESTER)) as edge:
            sides.link.mend()
            edge.wait_for_count(MANY, timeout=60)
            assert numbers(edge.messages, DOWN) == list(range(first, first + MANY))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_waits_for_the_link_survives_the_end_of_the_edges_broker(sides, how):
    """At SIGKILL that is what was there at the last autosave, here one by hand."""
    cloud = sides.tap(sides.cloud, "sedna/#")
    sides.link.cut()
    with Tap(sides.edge.port, LINK, **sides.edge.login(TESTER)) as edge:
        edge.wait_for(is_link("0"), 30)
        edge.publish_all(count_from(0, EVENT))
    sides.edge_broker.save()
    getattr(sides.edge_broker, how)()
    sides.edge_broker.start()
    sides.link.mend()
    cloud.wait_for_count(MANY, lambda message: message.topic == EVENT, 60)
    assert numbers(cloud.messages, EVENT) == list(range(MANY))


def test_a_cloud_that_forgot_everything_hears_the_latest_values_again(sides):
    edge = sides.tap(sides.edge, "sedna/#")
    edge.publish(STATE, b"old", retain=True)
    edge.publish(STATE, b"new", retain=True)
    _forget(sides.cloud_broker)
    sides.cloud_broker.start()
    with Tap(sides.cloud.port, "sedna/#", **sides.cloud.login(TESTER)) as cloud:
        cloud.wait_for_topic(STATE, 60)
        cloud.wait_for(is_link("1"), 60)
        assert cloud.of(STATE)[-1].payload == b"new"
        _round_trip(sides.cloud, edge)


def test_the_largest_packet_that_the_cloud_takes_does_not_block_the_bridge(sides):
    cloud, edge = sides.tap(sides.cloud, "sedna/#"), sides.tap(sides.edge, "sedna/#")
    largest = 2_097_152 - len(DOWN) - 20
    cloud.publish(DOWN, bytes(largest))
    assert len(edge.wait_for_topic(DOWN).payload) == largest
    edge.publish(UP, bytes(2_097_152 + 1000))
    edge.publish(UP, b"next")
    assert cloud.wait_for_topic(UP).payload == b"next"
    assert "Dropping too large outgoing PUBLISH" in sides.edge_broker.log


def _forget(broker: Mosquitto) -> None:
    broker.stop()
    (broker.folder / "mosquitto.db").unlink()
