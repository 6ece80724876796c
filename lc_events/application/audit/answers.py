"""What a request over MQTT is answered with (CONTRACT section 7): the same readings as the commands'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import orjson

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.travel import Linked, Span, history, version_at
from lc_events.application.audit.verify import check_in
from lc_events.application.audit.why import why
from lc_events.application.cloud_events import cloud_event
from lc_events.errors import NotFoundError, RefusedError
from lc_events.messages.json import JsonObject
from lc_events.messages.names import JOB_KIND, stream_id
from lc_events.messages.requests import Ask

__all__ = ["MAX_BYTES", "VERBS", "answer"]

MAX_BYTES = 256 * 1024
"""An answer's size at most, its envelope included."""

_ENVELOPE = 1024
_EVENTS = 100
_STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"


def answer(archive: Archive[Any], verb: str, ask: Ask) -> JsonObject:
    """The data of an answer.

    Raises RefusedError `verb` for another verb, `malformed` for fields that contradict each other, `too_large` if even
    one event does not fit; NotFoundError for a job, version or time that is not there.
    """
    reading = VERBS.get(verb)
    if reading is None:
        raise RefusedError(f"verb {verb[:40]!r} is not one of {', '.join(VERBS)}", code="verb")
    stream = stream_id(ask.namespace, JOB_KIND, ask.name)
    if archive.journal.head(stream).version == 0:
        raise NotFoundError(f"there is no job {ask.namespace}/{ask.name} on this node")
    return reading(archive, stream, ask)


def _state(archive: Archive[Any], stream: str, ask: Ask) -> JsonObject:
    return archive.view(archive.state(stream, _version(archive, stream, ask)))


def _version(archive: Archive[Any], stream: str, ask: Ask) -> int | None:
    """The version that is asked for; None is the newest."""
    if ask.at_version is not None and ask.at_time is not None:
        raise RefusedError("at_version and at_time: give one of them")
    if ask.at_time is None:
        return ask.at_version
    return version_at(archive, stream, _stamp(ask.at_time)).version


def _stamp(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
        stamp = moment.astimezone(UTC).strftime(_STAMP) if moment.tzinfo else None
    except (ValueError, OverflowError):
        stamp = None
    if stamp is None:
        raise RefusedError(f"at_time {text!r} is not RFC 3339 with an offset, as 2026-05-09T03:00:00Z")
    return stamp


def _history(archive: Archive[Any], stream: str, ask: Ask) -> JsonObject:
    """As many events as fit, in version order; `next_version` is where the next page begins."""
    first = ask.from_version or 1
    newest = archive.journal.head(stream).version
    last = min(ask.to_version or newest, newest)
    limit = min(ask.limit or _EVENTS, max(0, last - first + 1))
    page = history(archive, stream, Span(first, min(last, first + limit - 1)))
    events: list[orjson.Fragment] = []
    room = MAX_BYTES - _ENVELOPE
    for linked in islice(page, limit):
        event = _event(archive.node, linked, raw=ask.raw)
        room -= len(event) + 1
        if room < 0:
            break
        events.append(orjson.Fragment(event))
    if limit and not events:
        raise RefusedError(
            f"version {first} alone is larger than an answer may be; read it by `export`", code="too_large"
        )
    following = first + len(events)
    return {"events": events, "next_version": following if following <= last else None}


def _event(node: str, linked: Linked, *, raw: bool) -> bytes:
    return cloud_event(node, linked.row, linked.previous_hash, raw=raw)


def _verify(archive: Archive[Any], stream: str, _ask: Ask) -> JsonObject:
    return check_in(archive, stream).to_json()


def _why(archive: Archive[Any], stream: str, ask: Ask) -> JsonObject:
    now = datetime.now(UTC).strftime(_STAMP)
    return why(archive, stream, now=now, time=None if ask.at_time is None else _stamp(ask.at_time)).to_json()


VERBS: Mapping[str, Callable[[Archive[Any], str, Ask], JsonObject]] = {
    "state": _state,
    "history": _history,
    "why": _why,
    "verify": _verify,
}
"""Verb to its reading."""
