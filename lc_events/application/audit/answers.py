"""What a request over MQTT is answered with (CONTRACT section 7): the same readings as the commands'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import orjson

from lc_events.application.audit.archive import Archive, do_not_yield
from lc_events.application.audit.travel import Linked, Span, history, version_at
from lc_events.application.audit.verify import check_in
from lc_events.application.audit.why import why
from lc_events.application.cloud_events import cloud_event
from lc_events.domain.stamp import stamp
from lc_events.errors import NotFoundError, RefusedError
from lc_events.messages.json import JsonObject
from lc_events.messages.names import JOB_KIND, stream_id
from lc_events.messages.requests import Ask

__all__ = ["MAX_BYTES", "VERBS", "answer"]

MAX_BYTES = 256 * 1024
"""An answer's size at most, its envelope included."""

_ENVELOPE = 1024
_EVENTS = 100
_MOST_EVENTS = 1000
"""About as many as can ever fit; no more are read for a page."""


class _Question(NamedTuple):
    archive: Archive[Any]
    stream: str
    ask: Ask
    now: str
    yield_to_others: Callable[[], None]


def answer(
    archive: Archive[Any], verb: str, ask: Ask, *, now: str, yield_to_others: Callable[[], None] = do_not_yield
) -> JsonObject:
    """The data of an answer at `now`, as events carry times; what takes long calls `yield_to_others` now and then.

    Raises RefusedError `verb` for another verb, `malformed` for fields that contradict each other, `too_large` if even
    one event does not fit; NotFoundError for a job, version or time that is not there.
    """
    reading = VERBS.get(verb)
    if reading is None:
        raise RefusedError(f"verb {verb[:40]!r} is not one of {', '.join(VERBS)}", code="verb")
    stream = stream_id(ask.namespace, JOB_KIND, ask.name)
    if archive.journal.head(stream).version == 0:
        raise NotFoundError(f"there is no job {ask.namespace}/{ask.name} on this node")
    return reading(_Question(archive, stream, ask, now, yield_to_others))


def _state(question: _Question) -> JsonObject:
    archive = question.archive
    return archive.view(archive.state(question.stream, _version(question)))


def _version(question: _Question) -> int | None:
    """The version that is asked for; None is the newest."""
    ask = question.ask
    if ask.at_version is not None and ask.at_time is not None:
        raise RefusedError("at_version and at_time: give one of them")
    if ask.at_time is None:
        return ask.at_version
    return version_at(question.archive, question.stream, _time(ask.at_time)).version


def _time(text: str) -> str:
    """A time in the form that events carry."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return stamp(moment)
    except (ValueError, OverflowError):
        pass
    raise RefusedError(f"at_time {text!r} is not RFC 3339 with an offset, as 2026-05-09T03:00:00Z")


def _history(question: _Question) -> JsonObject:
    """As many events as fit, in version order; `next_version` is where the next page begins."""
    archive, stream, ask = question.archive, question.stream, question.ask
    first = ask.from_version or 1
    newest = archive.journal.head(stream).version
    last = min(ask.to_version or newest, newest)
    limit = min(ask.limit or _EVENTS, _MOST_EVENTS, max(0, last - first + 1))
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
            f"version {first} alone is larger than an answer may be; read it with `lc-events export`", code="too_large"
        )
    following = first + len(events)
    return {"events": events, "next_version": following if following <= last else None}


def _event(node: str, linked: Linked, *, raw: bool) -> bytes:
    return cloud_event(node, linked.row, linked.previous_hash, raw=raw)


def _verify(question: _Question) -> JsonObject:
    return check_in(question.archive, question.stream, yield_to_others=question.yield_to_others).to_json()


def _why(question: _Question) -> JsonObject:
    at_time = question.ask.at_time
    time = None if at_time is None else _time(at_time)
    return why(question.archive, question.stream, now=question.now, time=time).to_json()


VERBS: Mapping[str, Callable[[_Question], JsonObject]] = {
    "state": _state,
    "history": _history,
    "why": _why,
    "verify": _verify,
}
"""Verb to its reading."""
