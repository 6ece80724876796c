"""Events from a broker: each is read once, and gaps between them are found; anybody may have sent them."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from lc_events.application.audit.narration import narrate
from lc_events.application.cloud_events import TYPE_PREFIX, TYPE_SUFFIX
from lc_events.application.mapper import EventMapper
from lc_events.domain.events import LC_EVENTS, Registry
from lc_events.domain.job import JobState
from lc_events.errors import IntegrityError, RefusedError
from lc_events.messages.json import UINT64_MAX, JsonObject, dumps, loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND, stream_id
from lc_events.mqtt.packets import Received
from lc_events.mqtt.topics import TopicKind, Topics

__all__ = ["LiveEvent", "LiveEvents", "in_words"]

_REMEMBERED = 10_000
_MOST_TEXT = 200
_KINDS = {TopicKind.EVENT_JOB: JOB_KIND, TopicKind.EVENT_DATASET: DATASET_KIND}
_LINE_ENDS = bytes.maketrans(b"\n\r\t", b"   ")
"""In JSON these can only stand between tokens."""


class LiveEvent(NamedTuple):
    """One event; `missing` are the first and last of the versions that were lost just before it, None if none were."""

    node: str
    stream: str
    version: int
    name: str
    time: str
    data: JsonObject
    line: bytes
    """The CloudEvent as it came, on one line."""
    missing: tuple[int, int] | None = None


class LiveEvents:
    """Reads each event once: a controller that connects again sends the newest events again, under the same ids."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._versions: dict[tuple[str, str], int] = {}

    def read(self, received: Received) -> LiveEvent | None:
        """The event in a message, None if it came before; RefusedError if it is not an event."""
        topic = self._topics.parse(received.topic)
        kind = _KINDS.get(topic.kind)
        if kind is None:
            raise RefusedError("not a topic of events", code="topic")
        fields = loads_object(received.payload, max_integer=UINT64_MAX)
        stream = stream_id(topic.namespace, kind, topic.name)
        event_id, version, type_, time, data = (fields.get(n) for n in ("id", "sequence", "type", "time", "data"))
        if (fields.get("source"), fields.get("subject")) != (f"/sedna/{topic.node}", stream):
            raise RefusedError("its source and subject are not those of its topic", code="mismatch")
        if (
            not isinstance(event_id, str)
            or type(version) is not int
            or not isinstance(type_, str)
            or not isinstance(time, str)
            or not isinstance(data, dict)
        ):
            raise RefusedError("not an event: id, sequence, type, time or data is missing")
        if self._came_before(event_id):
            return None
        name = type_.removeprefix(TYPE_PREFIX).removesuffix(TYPE_SUFFIX)
        line = received.payload.translate(_LINE_ENDS)
        missing = self._missing((topic.node, stream), version)
        return LiveEvent(topic.node, stream, version, name, time, data, line, missing)

    def _came_before(self, event_id: str) -> bool:
        if event_id in self._ids:
            return True
        self._ids[event_id] = None
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return False

    def _missing(self, of: tuple[str, str], version: int) -> tuple[int, int] | None:
        before = self._versions.get(of)
        self._versions[of] = version
        return (before + 1, version - 1) if before is not None and version > before + 1 else None


def in_words(event: LiveEvent) -> str:
    """What an event says beyond its name, not yet made safe to show; of its verdict only the reason, as it came."""
    try:
        decoded = EventMapper(Registry(LC_EVENTS)).decode(event.stream, event.version, event.name, dumps(event.data))
        words = narrate(decoded, JobState(event.stream))
    except (IntegrityError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return _cut(dumps(event.data).decode())
    reason = event.data.get("reason")
    return f"{words}; {_cut(reason)}" if isinstance(reason, str) else words


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
