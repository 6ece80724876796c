"""The events that a listener heard: a stream's in their order, repeats under equal ids."""

from __future__ import annotations

from collections import defaultdict

from support.invariants import Histories
from support.tap import Tap


def events_heard(tap: Tap, topic: str = "/events/") -> dict[str, dict[int, str]]:
    """Stream to version to id, of one topic or all; AssertionError if one came before its predecessor or as another."""
    heard: dict[str, dict[int, str]] = defaultdict(dict)
    for message in tap.messages:
        if topic in message.topic:
            event = message.json
            known, version = heard[event["subject"]], event["sequence"]
            assert known.setdefault(version, event["id"]) == event["id"]
            assert version == 1 or version - 1 in known, f"{event['subject']}: {version} before {version - 1}"
    return heard


def is_all_heard(tap: Tap, streams: Histories) -> bool:
    """Whether every event of these histories was heard."""
    heard = events_heard(tap)
    return all(len(heard.get(stream, {})) == len(events) for stream, events in streams.items())
