"""What the broker keeps of a node: whether controller and bridge are up, heads of its store, leftovers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lc_events.application.journal import Journal
from lc_events.controller.presence import complaints
from lc_events.controller.world import World
from lc_events.doctor.connection import WAIT
from lc_events.doctor.finding import Finding, note, ok, skipped, wrong
from lc_events.errors import BrokerError, RefusedError
from lc_events.messages.json import JsonObject, dumps, loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND, stream_id
from lc_events.mqtt.oneshot import request, retained
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import GM, ParsedTopic, TopicKind, Topics

__all__ = ["Retained", "check_controller", "check_heads", "check_leftovers", "check_link", "check_nodes", "look"]

_LATEST = {TopicKind.STATE_JOB: JOB_KIND, TopicKind.STATE_MODEL: JOB_KIND, TopicKind.STATE_DATASET: DATASET_KIND}
_KEPT = (*_LATEST, TopicKind.STATUS, TopicKind.LINK, TopicKind.OUTBOX, TopicKind.STATE_HEAD)
_MOST = 5
_SILENCE = 1.0


@dataclass(frozen=True)
class Retained:
    """Retained messages by topic, as they were when the examination began; values may be anybody's."""

    topics: Topics
    found: Mapping[str, bytes]

    def parsed(self) -> Iterator[tuple[ParsedTopic, str, bytes]]:
        """Each message of a topic that we know, in the order of topics."""
        for topic, payload in sorted(self.found.items()):
            try:
                yield self.topics.parse(topic), topic, payload
            except RefusedError:
                continue

    def json(self, topic: str) -> JsonObject | None:
        """The object that is retained on a topic; None if there is none."""
        try:
            return loads_object(self.found.get(topic, b""))
        except RefusedError:
            return None


def look(mqtt: MqttSettings, topics: Topics, node: str | None) -> Retained:
    """Ask for all that may be retained of a node, or for the status of all nodes; BrokerError if it is denied."""
    status, link = topics.status("node").replace("/node/", "/+/"), topics.link("node").replace("/node/", "/+/")
    filters = [status, link]
    if node is not None:
        parts = ("state", "down", "up", "events", "worker", "ask", "work")
        filters = [status, *(f"{topics.root}/{part}/{node}/#" for part in parts), topics.tick(node)]
    # an own message is the mark of the end; where it is denied, silence is
    mark = topics.answer(GM if node is None else node, f"doctor-{secrets.token_hex(6)}")
    found = retained(replace(mqtt, client_id=None), *filters, marker=mark, quiet_seconds=_SILENCE, timeout=WAIT)
    return Retained(topics, found)


def check_controller(mqtt: MqttSettings, seen: Retained, node: str, process: str | None) -> Iterator[Finding]:
    """Whether the controller says that it is online, and answers; `process` is the one that has the state folder."""
    check = "controller"
    status = seen.json(seen.topics.status(node))
    state, since = (None, None) if status is None else (status.get("state"), status.get("time"))
    here = f"process {process} has the state folder"
    if state == "online":
        took = _answer_time(mqtt, seen.topics, node)
        if took is None:
            says = f"says that it is online since {since}, but does not answer"
            advice = "it died unseen: start `lc-events run`" if process is None else "see its log, and restart it"
            yield wrong(check, says, advice)
        elif process is None:
            says = f"online since {since} and answers, but does not run with this state folder"
            yield note(check, says, "set LC_STATE_DIR to its folder, or examine the machine where it runs")
        else:
            yield ok(check, f"online since {since}, answers within {took * 1000:.0f} ms; {here}")
    elif process is not None:
        says = f"{here}, but on this broker it " + ("was never seen" if state is None else f"is offline since {since}")
        yield wrong(check, says, "see its log: is it connected, to this broker, as this node, below this topic root?")
    else:
        says = "was never on this broker" if state is None else f"offline since {since}"
        yield note(check, says, "start it: lc-events run")


def _answer_time(mqtt: MqttSettings, topics: Topics, node: str) -> float | None:
    """Seconds until the controller answered (that it has no such job); None if it did not."""
    asker = f"doctor-{secrets.token_hex(6)}" if mqtt.username is None else mqtt.username
    question = {"request_id": secrets.token_hex(6), "reply_to": asker, "namespace": "default", "name": "doctor"}
    began = time.monotonic()
    try:
        request(
            replace(mqtt, client_id=None),
            Publication(topics.ask(node, "state"), dumps(question)),
            topics.answer(node, asker),
            timeout=WAIT,
        )
    except BrokerError:
        return None
    return time.monotonic() - began


def check_nodes(seen: Retained) -> Iterator[Finding]:
    """Which nodes a global manager can reach."""
    nodes = [topic.node for topic, _, _ in seen.parsed() if topic.kind is TopicKind.STATUS]
    for node in nodes:
        status = seen.json(seen.topics.status(node)) or {}
        link = seen.found.get(seen.topics.link(node))
        says = f"{status.get('state')} since {status.get('time')}"
        if link == b"0":
            yield wrong(f"node {node}", f"{says}; its link is down", "see the edge broker's log and the network")
        elif status.get("state") != "online":
            yield note(f"node {node}", says, "start its local controller")
        else:
            yield ok(f"node {node}", says)
    if not nodes:
        yield note("nodes", "no node was ever on this broker", "start a local controller: lc-events run")


def check_link(seen: Retained, node: str) -> Iterator[Finding]:
    """What the bridge says of its connection to the cloud."""
    link = seen.found.get(seen.topics.link(node))
    if link is None:
        yield skipped("link", "no bridge tells of itself on this broker")
    elif link == b"1":
        yield ok("link", "the bridge to the cloud is up")
    else:
        yield wrong(
            "link",
            "the bridge to the cloud is down; the node goes on, and its messages wait",
            "see the broker's log: address, password or certificate of the bridge, network",
        )


def check_heads(seen: Retained, journal: Journal) -> Iterator[Finding]:
    """Whether the store has all that others have seen of it."""
    wrong_ones = complaints(seen.found, topics=seen.topics, journal=journal)
    for _, words in wrong_ones[:_MOST]:
        yield wrong("heads", words, "the store was restored or replaced: `lc-events verify --head` says what is lost")
    if len(wrong_ones) > _MOST:
        yield wrong("heads", f"and {len(wrong_ones) - _MOST} more", "as above")
    if not wrong_ones:
        heads = sum(topic.kind is TopicKind.STATE_HEAD for topic, _, _ in seen.parsed())
        says = "the one on the broker is" if heads == 1 else f"the {heads} on the broker are all"
        yield ok("heads", f"{says} in this store")


def check_leftovers(seen: Retained, node: str, world: World | None) -> Iterator[Finding]:
    """Retained values of jobs and datasets that are gone, and retained messages where none should be."""
    found = 0
    for topic, name, _ in seen.parsed():
        if topic.node != node:
            continue
        if topic.kind not in _KEPT:
            found += 1
            says = f"{name} holds a retained message, which comes again with every connection"
            yield wrong("leftovers", says, _clear(name))
        elif topic.kind in _LATEST and world is not None:
            words = _leftover(world, stream_id(topic.namespace, _LATEST[topic.kind], topic.name))
            if words is not None:
                found += 1
                yield wrong("leftovers", f"{name} holds a value, but {words}", _clear(name))
    if not found:
        yield ok("leftovers", "nothing is retained of jobs or datasets that are gone")


def _leftover(world: World, stream: str) -> str | None:
    if stream in world.broken:
        return None
    state = world.get(stream)
    if state is None:
        return "this store never had it"
    return None if state.is_live else "it was deleted (a controller that connects takes the value away)"


def _clear(topic: str) -> str:
    return f"mosquitto_pub -r -n -t '{topic}'"
