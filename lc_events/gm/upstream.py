"""What local controllers say: reports to be confirmed, states that confirm our messages, refusals, births."""

from __future__ import annotations

import logging
from typing import NamedTuple
from uuid import uuid4

from pydantic import ValidationError

from lc_events.application.known import identify
from lc_events.application.recorder import Known
from lc_events.errors import RefusedError
from lc_events.gm import decisions
from lc_events.gm.desk import MAX_BYTES, Desk
from lc_events.gm.job import GmJob
from lc_events.gm.ledger import Changes
from lc_events.messages.gm import UpMessage, explain
from lc_events.messages.json import UINT64_MAX, JsonObject, loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND, Stream, stream_id
from lc_events.mqtt.packets import Received
from lc_events.mqtt.topics import ParsedTopic, TopicKind

__all__ = ["Upstream"]

_MOST_STRANGERS = 1000

_HISTORY = "history"
"""The code under which an LC says that its store lacks what it once published."""

_log = logging.getLogger("lc_events.gm")


class _Upward(NamedTuple):
    id: str | None
    content: JsonObject


class Upstream:
    """Every method raises RefusedError for what makes no sense, StoreError if it could not be saved: then try again."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sessions: dict[str, str] = {}
        self._shown: dict[tuple[str, Stream], tuple[str, int | None]] = {}
        self._strangers: set[tuple[str, Stream]] = set()

    def report(self, topic: ParsedTopic, received: Received) -> None:
        """Record an LC's report, once, and confirm it, each time it comes."""
        if received.retain:
            raise RefusedError("a retained report would come again with every connection")
        upward = _read_up(topic, received.payload)
        stream = stream_id(topic.namespace, topic.resource_kind, topic.name)
        changes = Changes(self._desk.ledger)
        if changes.of(stream).version == 0:
            self._note_stranger(topic.node, stream)
            return
        # by node: an id that one node uses must not keep out another's report
        identity = identify(f"{topic.node}/{stream}", upward.id, upward.content, dup=received.dup)
        if identity.has_id:
            is_repeat = self._desk.ledger.is_known(identity.scope, identity.key)
        else:
            is_repeat = self._desk.recent.is_repeat(identity, "")
        if is_repeat:
            changes.keep(decisions.receive_duplicate(changes.of(stream), topic.node, upward.id, self._desk.now()))
        else:
            self._take(changes, stream, topic.node, upward)
            known = Known(identity.scope, identity.key, "", self._desk.clock.now().timestamp())
            changes.known.append(known)
        self._desk.commit(changes)
        if not is_repeat and not identity.has_id:
            self._desk.recent.remember(known)
        if upward.id is not None:
            self._desk.outbox.confirm(topic.node, upward.id)

    def _take(self, changes: Changes, stream: Stream, node: str, upward: _Upward) -> None:
        state, now = changes.of(stream), self._desk.now()
        if isinstance(state, GmJob):
            facts = decisions.Facts(now, uuid4().hex)
            changes.keep(decisions.receive_report(state, node, upward.id, upward.content, facts))
        else:
            changes.keep(decisions.receive_sample_count(state, node, upward.id, upward.content, now))

    def _note_stranger(self, node: str, stream: Stream) -> None:
        """What is reported of an unknown resource is not confirmed, for it is on no disk; the LC repeats it rarely."""
        if (node, stream) not in self._strangers:
            if len(self._strangers) >= _MOST_STRANGERS:
                self._strangers.clear()
            self._strangers.add((node, stream))
            _log.warning(
                "node %s reports on %s, which this global manager does not know. If its store was lost, restore a copy "
                "of GM_STATE_DIR. Applying the manifest begins the job anew at round 1; to end it, apply it and then "
                "delete it",
                node,
                stream,
            )

    def state(self, topic: ParsedTopic, received: Received) -> None:
        """See in a retained state which of our messages a node has; the empty payload ends a delete."""
        kind = JOB_KIND if topic.kind is TopicKind.STATE_JOB else DATASET_KIND
        stream = stream_id(topic.namespace, kind, topic.name)
        state = self._desk.ledger.get(stream)
        delivery = None if state is None else state.deliveries.get(topic.node)
        if state is None or delivery is None:
            return
        shows: int | None
        if delivery.operation == "delete":
            shows = 0 if received.payload else delivery.version
        else:
            shows = self._shown_version(topic.node, stream, received.payload) if received.payload else 0
        if shows is None:
            return
        if shows < delivery.version:
            if delivery.settled and delivery.refusal is None:
                self._desk.outbox.reopen(state, topic.node)
            return
        changes = Changes(self._desk.ledger)
        if changes.keep(decisions.confirm_delivery(state, topic.node, shows, self._desk.now())):
            self._desk.commit(changes)
        self._desk.outbox.close(changes.of(stream), topic.node)

    def _shown_version(self, node: str, stream: Stream, payload: bytes) -> int | None:
        """Which event of ours caused the newest message that a state names; None if it names none of ours."""
        named = loads_object(payload).get("gm_message")
        if not isinstance(named, str):
            return None
        last, version = self._shown.get((node, stream), ("", None))
        if named != last:  # states come with every change at the node, the id in them rarely changes
            read = self._desk.ledger.read_id(named)
            version = read[1] if read is not None and read[0] == stream else None
            self._shown[node, stream] = (named, version)
        return version

    def refusal(self, topic: ParsedTopic, received: Received) -> None:
        """Note that a node refused one of our messages; it is not repeated."""
        data = loads_object(received.payload)
        named, code, error = (data.get(name) for name in ("id", "code", "error"))
        if code == _HISTORY:
            self._tell_again(topic.node)
            return
        read = self._desk.ledger.read_id(named) if isinstance(named, str) else None
        if read is None:
            return
        stream, version = read
        changes = Changes(self._desk.ledger)
        refused = decisions.refuse_delivery(
            changes.of(stream),
            topic.node,
            version,
            code=str(code)[:64],
            error=str(error)[:1000],
            now=self._desk.now(),
        )
        if changes.keep(refused):
            self._desk.commit(changes)
            _log.warning("%s: node %s refused it: %s", stream, topic.node, str(error)[:1000])

    def _tell_again(self, node: str) -> None:
        """An LC found that its store is a new or an older one: it may have lost anything."""
        for state in self._desk.ledger.states():
            delivery = state.deliveries.get(node)
            if delivery is not None and delivery.operation == "insert" and delivery.refusal is None:
                self._desk.outbox.reopen(state, node)
        self._desk.outbox.node_is_back(node)

    def birth(self, topic: ParsedTopic, received: Received) -> None:
        """An LC that came back is told at once what it has not shown."""
        if not received.payload:
            return
        data = loads_object(received.payload)
        session = str(data.get("session"))[:64]
        if data.get("state") == "online" and self._sessions.get(topic.node) != session:
            self._sessions[topic.node] = session
            self._desk.outbox.node_is_back(topic.node)


def _read_up(topic: ParsedTopic, payload: bytes) -> _Upward:
    if len(payload) > MAX_BYTES:
        raise RefusedError(f"{len(payload)} bytes are more than {MAX_BYTES}", code="too_large")
    try:
        message = UpMessage.model_validate(loads_object(payload, max_integer=UINT64_MAX))
    except ValidationError as error:
        raise RefusedError(explain(error)) from None
    header = message.header
    named = (header.resource_kind.lower(), header.namespace, header.resource_name)
    if named != (topic.resource_kind, topic.namespace, topic.name):
        raise RefusedError(f"the topic names {topic.resource_kind} {topic.name}, the header {named}", code="mismatch")
    if header.operation != "status":
        raise RefusedError(f"operation {header.operation[:40]!r} is not status", code="operation")
    return _Upward(message.id, message.content)
