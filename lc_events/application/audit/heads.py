"""Heads seen elsewhere, as a broker keeps them: `mosquitto_sub -v -t 'sedna/state/+/heads/+/+'` (CONTRACT 2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from lc_events.application.recorder import Head
from lc_events.errors import UsageError
from lc_events.messages.names import JOB_KIND, stream_id

__all__ = ["SeenHead", "heads_of", "read_heads"]

_LEVEL = r"[A-Za-z0-9_.-]+"
_TOPIC = re.compile(rf"(?:{_LEVEL}/)+state/({_LEVEL})/heads/({_LEVEL})/({_LEVEL})")
_HASH = re.compile(r"[0-9a-f]{64}")


class SeenHead(NamedTuple):
    """A head; `node` and `stream` are None where a line held the payload alone."""

    node: str | None
    stream: str | None
    head: Head


def read_heads(lines: Iterable[str]) -> Iterator[SeenHead]:
    """Heads, one a line: `TOPIC PAYLOAD`, `{"topic":…,"payload":…}` (mosquitto_sub -F %j), or the payload alone.

    Empty payloads (a retained message that was cleared) are passed over. Raises UsageError for anything else.
    """
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not _TOPIC.fullmatch(text):
            seen = _read(text)
            if seen is None:
                raise UsageError(
                    f"line {number} is not a head: give TOPIC PAYLOAD as `mosquitto_sub -v` prints it, or a payload"
                )
            yield seen


def heads_of(seen: Iterable[SeenHead], *, node: str, stream: str | None) -> tuple[dict[str, list[Head]], int]:
    """The heads of a node's streams, and how many were of other nodes; a payload alone belongs to `stream`.

    Raises UsageError for a payload alone if there is no `stream`.
    """
    found: dict[str, list[Head]] = {}
    others = 0
    for head in seen:
        of = head.stream or stream
        if of is None:
            raise UsageError("the head does not say which job's it is: name the JOB, or give TOPIC PAYLOAD")
        if head.node not in (None, node):
            others += 1
        else:
            found.setdefault(of, []).append(head.head)
    return found, others


def _read(text: str) -> SeenHead | None:
    topic, _, payload = text.partition(" ")
    if match := _TOPIC.fullmatch(topic):
        head = _head(_parsed(payload))
        return None if head is None else _named(match, head)
    value = _parsed(text)
    if isinstance(value, dict) and "topic" in value:
        inner = value.get("payload")
        head = _head(_parsed(inner) if isinstance(inner, str) else inner)
        match = _TOPIC.fullmatch(str(value["topic"]))
        return None if head is None or match is None else _named(match, head)
    head = _head(value)
    return None if head is None else SeenHead(None, None, head)


def _named(match: re.Match[str], head: Head) -> SeenHead:
    node, namespace, name = match.groups()
    return SeenHead(node, stream_id(namespace, JOB_KIND, name), head)


def _parsed(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _head(value: object) -> Head | None:
    if not isinstance(value, dict):
        return None
    version, hash_ = value.get("version"), value.get("hash")
    if type(version) is not int or version < 1 or not isinstance(hash_, str) or not _HASH.fullmatch(hash_):
        return None
    return Head(version, hash_)
