from __future__ import annotations

import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest
from support.prepared import TESTER, Prepared, prepare
from support.visitor import MQTT_3_1_1, MQTT_5, TurnedAwayError, Visitor
from support.waiting import eventually

from lc_events.errors import BrokerError
from lc_events.mqtt.client import MqttClient, Publication
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import TopicKind, Topics

NOT_AUTHORIZED = 0x87

TOPICS = Topics()
FIELDS = {
    "resource_kind": "dataset",
    "namespace": "default",
    "name": "d",
    "worker": "w1",
    "verb": "state",
    "request": "r1",
    "asker": "device",
}


KUBEEDGE = {"$hw/events/device/d1/twin/update", "SYS/dis/upload_records", "default/user/x"}


def _everything() -> list[str]:
    """One topic of each kind on each of two nodes, answers to two askers, and what is not ours."""
    topics = {f"sedna/{kind.value.format(node=node, **FIELDS)}" for kind in TopicKind for node in ("edge1", "edge2")}
    topics |= {TOPICS.answer(node, asker) for node in ("edge1", "edge2", "gm") for asker in ("device", "someone")}
    return sorted(topics | {"other/topic", "sedna/other", *KUBEEDGE})


EVERYTHING = _everything()

_KUBEEDGE = "/$hw/* /SYS/* /default/user/*"
_LC_BOTH = "down/edge1/* worker/edge1/* tick/edge1 state/edge1/* events/edge1/* errors/edge1 ask/edge1/* answer/edge1/*"

# What each user may write and read, as CONTRACT section 2 tells who speaks to whom. Shell patterns of what follows
# sedna/, or with a / before them of a whole topic; * also matches /.
RIGHTS = {
    "lc-edge1": (
        f"up/edge1/* {_LC_BOTH}",
        _LC_BOTH,
    ),
    "worker-edge1": ("worker/edge1/w1/info", "work/edge1/w1 worker/edge1/w1/done"),
    "bridge-edge1": (
        "up/edge1/* state/edge1/* events/edge1/* errors/edge1 answer/edge1/*",
        "down/edge1/* ask/edge1/* work/edge1/*",
    ),
    "gm": (
        "down/* work/* apply/* answer/gm/* ask/*",
        "up/* state/* events/* errors/* apply/* answer/gm/*",
    ),
    "operator": ("apply/* tick/* ask/*", "answer/* state/* events/* errors/*"),
    "device": ("ask/*", "state/* events/* answer/*/device"),
    "auditor": ("ask/*", "[!/]*"),
    "eventbus": (f"tick/* ask/* {_KUBEEDGE}", f"state/* events/* {_KUBEEDGE}"),
    "health": ("", ""),
}


def _granted(patterns: str) -> set[str]:
    return {
        topic
        for topic in EVERYTHING
        for pattern in patterns.split()
        if fnmatchcase(topic.removeprefix("sedna/") if topic.startswith("sedna/") else f"/{topic}", pattern)
    }


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Iterator[Prepared]:
    """A broker that has users of all roles for two nodes."""
    accounts = [*(f"{role}:{node}" for role in ("lc", "worker") for node in ("edge1", "edge2")), "eventbus"]
    options = tuple(word for account in accounts for word in ("--account", account))
    prepared = prepare("cloud", tmp_path_factory.mktemp("cloud"), "edge1", "edge2", options=options)
    with prepared.broker():
        yield prepared


@pytest.fixture(params=[MQTT_3_1_1, MQTT_5], ids=["3.1.1", "5"])
def protocol(request):
    return request.param


@pytest.mark.parametrize("user", RIGHTS)
def test_a_user_can_write_what_its_role_needs_and_nothing_else(prepared, protocol, user):
    allowed = _granted(RIGHTS[user][0])
    with (
        Visitor(prepared.port, **prepared.login(TESTER)) as observer,
        Visitor(prepared.port, protocol, **prepared.login(user)) as visitor,
    ):
        observer.subscribe("#", "$hw/#")
        reasons = {topic: visitor.publish(topic) for topic in EVERYTHING}
        observer.publish("the/end")
        observer.wait_for("the/end")
        assert set(observer.heard.topics) - {"the/end"} == allowed
        if protocol == MQTT_5:
            assert {topic for topic, reason in reasons.items() if reason == NOT_AUTHORIZED} == set(EVERYTHING) - allowed
        else:
            assert set(reasons.values()) == {0}


@pytest.mark.parametrize("user", RIGHTS)
def test_a_user_can_read_what_its_role_needs_and_nothing_else(prepared, protocol, user):
    allowed = _granted(RIGHTS[user][1])
    with (
        Visitor(prepared.port, **prepared.login(TESTER)) as speaker,
        Visitor(prepared.port, protocol, **prepared.login(user)) as visitor,
    ):
        visitor.subscribe("#", "$hw/#", *EVERYTHING)
        for topic in EVERYTHING:
            speaker.publish(topic)
        # the broker sends what it has for a client before it answers the next packet of that client
        visitor.subscribe("the/end")
        eventually(lambda: allowed <= set(visitor.heard.topics))
        visitor.subscribe("the/end")
        assert set(visitor.heard.topics) == allowed


def test_a_name_of_another_node_that_begins_alike_is_another_name(prepared):
    with (
        Visitor(prepared.port, **prepared.login("lc-edge1")) as one,
        Visitor(prepared.port, **prepared.login("worker-edge1")) as other,
    ):
        assert one.publish("sedna/up/edge10/dataset/default/d") == NOT_AUTHORIZED
        assert one.publish("sedna/errors/edge1/more") == NOT_AUTHORIZED
        assert other.publish("sedna/worker/edge10/w/info") == NOT_AUTHORIZED
        assert other.publish("sedna/worker/edge1/w/done") == NOT_AUTHORIZED


@pytest.mark.parametrize("user", ["lc-edge1", "device", "bridge-edge1"])
def test_wildcards_are_no_way_around(prepared, protocol, user):
    with Visitor(prepared.port, protocol, **prepared.login(user)) as visitor:
        visitor.subscribe("sedna/+/edge2/#", "+/+/edge2/#", "sedna/down/#", "$SYS/#", "$share/g/sedna/#")
        with Visitor(prepared.port, **prepared.login(TESTER)) as speaker:
            speaker.publish(TOPICS.down("edge2", "dataset", "default", "d"))
            speaker.publish(TOPICS.work("edge2", "w1"))
        visitor.subscribe("the/end")
        assert visitor.heard.topics == []


def test_the_health_check_reads_one_topic_of_the_broker(prepared):
    with Visitor(prepared.port, **prepared.login("health")) as visitor:
        visitor.subscribe("$SYS/#")
        visitor.wait_for("$SYS/broker/uptime")
        assert set(visitor.heard.topics) == {"$SYS/broker/uptime"}
    found = subprocess.run(
        ["mosquitto_sub", "-p", str(prepared.port), "-t", "$SYS/broker/uptime", "-C", "1", "-W", "5"],
        env={"XDG_CONFIG_HOME": str(prepared.folder / "health"), "PATH": "/usr/bin:/usr/local/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.endswith(" seconds\n")


def test_nobody_comes_in_without_a_name(prepared, protocol):
    with pytest.raises(TurnedAwayError), Visitor(prepared.port, protocol):
        pytest.fail("came in")


def test_nobody_comes_in_with_a_wrong_password_or_none(prepared, protocol):
    for password in ("wrong", "", None):
        with pytest.raises(TurnedAwayError), Visitor(prepared.port, protocol, username="device", password=password):
            pytest.fail("came in")


@pytest.mark.parametrize("name", ["+", "#", "a/b", "lc-+", "lc-#", "%u", ""])
def test_names_that_are_topic_filters_do_not_come_in(prepared, protocol, name):
    for password in ("", prepared.password("device")):
        with pytest.raises(TurnedAwayError), Visitor(prepared.port, protocol, username=name, password=password):
            pytest.fail("came in")


@pytest.mark.parametrize("client_id", ["+", "#", "a/b", "sedna/#"])
def test_client_ids_that_are_topic_filters_open_nothing(prepared, protocol, client_id):
    with (
        Visitor(prepared.port, **prepared.login(TESTER)) as tester,
        Visitor(prepared.port, protocol, client_id=client_id, **prepared.login("lc-edge1")) as visitor,
    ):
        tester.subscribe("sedna/up/#")
        visitor.subscribe("#")
        tester.publish(TOPICS.down("edge2", "dataset", "default", "d"))
        tester.publish(TOPICS.down("edge1", "dataset", "default", "d"))
        visitor.wait_for(TOPICS.down("edge1", "dataset", "default", "d"))
        visitor.publish(TOPICS.up("edge2", "dataset", "default", "d"))
        visitor.publish(TOPICS.up("edge1", "dataset", "default", "d"))
        tester.wait_for(TOPICS.up("edge1", "dataset", "default", "d"))
        assert visitor.heard.topics == [TOPICS.down("edge1", "dataset", "default", "d")]
        assert tester.heard.topics == [TOPICS.up("edge1", "dataset", "default", "d")]


def test_what_waited_for_a_client_is_not_given_to_another_user_with_its_client_id(prepared):
    """A client id is no secret: who takes one takes its session, and must not get what the user may not read."""
    topic = TOPICS.down("edge1", "dataset", "default", "waiting")
    lc = {"client_id": "lc-edge1", "clean": False}
    with Visitor(prepared.port, MQTT_3_1_1, **prepared.login("lc-edge1"), **lc) as visitor:
        visitor.subscribe("sedna/down/edge1/#", "sedna/state/edge1/#")
    with Visitor(prepared.port, **prepared.login(TESTER)) as tester:
        tester.publish(topic)
        tester.publish(TOPICS.status("edge1"))
    with Visitor(prepared.port, MQTT_3_1_1, **prepared.login("device"), **lc) as thief:
        thief.wait_for(TOPICS.status("edge1"))
        assert thief.heard.topics == [TOPICS.status("edge1")]


def test_a_message_that_is_too_large_is_refused_before_it_is_sent(prepared):
    topic = TOPICS.down("edge1", "dataset", "default", "d")
    settings = MqttSettings.from_url(prepared.url("gm"))
    with MqttClient(settings, on_message=lambda _: None, clean=True) as client:
        client.wait_connected(10)
        client.publish_and_wait(Publication(topic, bytes(2_000_000)), 10)
        with pytest.raises(BrokerError) as refusal:
            client.publish_and_wait(Publication(topic, bytes(2_100_000)), 10)
        assert refusal.value.code == "too_large"
        client.publish_and_wait(Publication(topic, b"small"), 10)


def test_a_user_who_lost_his_rights_has_none_after_a_reload(tmp_path):
    options = ("--account", "device:camera7")
    prepared = prepare("cloud", tmp_path / "cloud", "edge1", options=options)
    with prepared.broker() as broker:
        with Visitor(prepared.port, **prepared.login("camera7")) as camera:
            assert camera.publish(TOPICS.ask("edge1", "state")) < 0x80
        kept = prepared.password("device")
        again = prepare("cloud", tmp_path / "cloud", "edge1")
        assert again.password("device") == kept
        broker.reload()
        eventually(lambda: "Reloading config" in broker.log)
        with (
            pytest.raises(TurnedAwayError),
            Visitor(prepared.port, username="camera7", password=prepared.password("camera7")),
        ):
            pytest.fail("came in")
