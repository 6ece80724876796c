"""One controller to a node: before each connection, whether another one answers under our name on this broker."""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeGuard

from lc_events.application.journal import Journal
from lc_events.errors import BrokerError, RefusedError
from lc_events.messages.json import Json, JsonObject, dumps, loads_object
from lc_events.messages.names import JOB_KIND, stream_id
from lc_events.mqtt.oneshot import WITHHELD, request, retained
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import TopicKind, Topics

__all__ = ["Presence", "complaints"]

_log = logging.getLogger("lc_events.presence")

_LOOK_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_SESSIONS = 100
_NO_VERSION = 1 << 63


class Presence:
    """Looks at what the broker keeps of this node, under a throw-away client id, before we connect under our own.

    A status `online` that is not of this process is foreign. If then somebody answers a request to this node, we do
    not connect, for two clients of one id throw each other out for ever; with `take_over` we do so once, and the other
    one sees, when it wants to come back, that it is us who answer now.
    """

    def __init__(
        self,
        settings: MqttSettings,
        *,
        topics: Topics,
        node: str,
        take_over: bool,
        is_taken: Callable[[BrokerError], None],
        first_seen: Callable[[Mapping[str, bytes]], None],
    ) -> None:
        """`is_taken` is told when the node is another's, `first_seen` what was retained when we first came."""
        self._settings = settings
        self._topics = topics
        self._node = node
        self._take_over = take_over
        self._is_taken = is_taken
        self._first_seen = first_seen
        self._has_looked = False
        self._ours: deque[str] = deque(maxlen=_SESSIONS)
        self._said: str | None = None

    def is_ours(self, session: str) -> None:
        """A session that this process says it is online under."""
        self._ours.append(session)

    def may_connect(self) -> bool:
        """Whether to connect now; False where the broker is not there, or the node is another's."""
        asker = f"presence-{secrets.token_hex(8)}"
        try:
            found = self._look(asker)
        except BrokerError as error:
            self._say(str(error))
            return error.code in WITHHELD  # then we cannot know, and connecting says what is denied
        self._said = None
        if not self._has_looked:
            self._has_looked = True
            self._first_seen(found)
        session = self._foreign_session(found)
        if session is None or (self._take_over and not self._ours) or not self._answers(asker):
            return True
        self._is_taken(
            BrokerError(
                f"node {self._node} is in use: another local controller (session {session}) answers on "
                f"{self._settings.display_url}; stop it, or start this one with --take-over"
            )
        )
        return False

    def _look(self, asker: str) -> dict[str, bytes]:
        return retained(
            self._settings,
            self._topics.status(self._node),
            self._topics.heads_filter(self._node),
            marker=self._topics.answer(self._node, asker),
            timeout=_LOOK_SECONDS,
        )

    def _foreign_session(self, found: Mapping[str, bytes]) -> str | None:
        status = _object(found.get(self._topics.status(self._node), b""))
        session = str(status.get("session"))[:64]
        return session if status.get("state") == "online" and session not in self._ours else None

    def _answers(self, asker: str) -> bool:
        """Whether somebody answers for the node; that it knows no such job is an answer too."""
        question = {"request_id": asker, "reply_to": asker, "namespace": "default", "name": "presence"}
        try:
            request(
                self._settings,
                Publication(self._topics.ask(self._node, "state"), dumps(question)),
                self._topics.answer(self._node, asker),
                timeout=_ANSWER_SECONDS,
            )
        except BrokerError as error:
            _log.info("the other controller of this name does not answer: %s", error)
            return False
        return True

    def _say(self, words: str) -> None:
        """Once for each reason: a broker may be away for days."""
        _log.log(logging.DEBUG if words == self._said else logging.WARNING, "%s; trying again", words)
        self._said = words


def complaints(found: Mapping[str, bytes], *, topics: Topics, journal: Journal) -> list[tuple[str, str]]:
    """Retained heads that the store does not have, as (topic, what is wrong): it was restored from a copy, or is new.

    A head that is older than the store's is in order, if the store has that very event.
    """
    wrong = []
    for topic, payload in sorted(found.items()):
        head = _object(payload)
        version, hash_ = head.get("version"), head.get("hash")
        try:
            parsed = topics.parse(topic)
        except RefusedError:
            continue
        if parsed.kind is not TopicKind.STATE_HEAD or not _is_version(version):
            continue
        stream = stream_id(parsed.namespace, JOB_KIND, parsed.name)
        ours = journal.head(stream)
        if version > ours.version:
            wrong.append((topic, f"{stream}: the broker has seen version {version}, this store ends at {ours.version}"))
        elif hash_ != _hash_at(journal, stream, version):
            wrong.append((topic, f"{stream}: version {version} in this store is not the one that the broker has seen"))
    return wrong


def _is_version(value: Json) -> TypeGuard[int]:
    """Whether a store could have it; what is retained may be anybody's."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _NO_VERSION


def _hash_at(journal: Journal, stream: str, version: int) -> str | None:
    rows = journal.rows.rows(stream=stream, gt=version - 1, lte=version)
    return rows[0].hash if rows else None


def _object(payload: bytes) -> JsonObject:
    try:
        return loads_object(payload)
    except RefusedError:
        return {}
