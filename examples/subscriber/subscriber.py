"""Follow a job's history over MQTT and check its hash chain: nothing is missed, and nothing was changed.

From the retained head the subscriber knows which versions it lacks; it asks the node for them, checks each link, and
goes on with live events. A gap, from whatever cause, is filled the same way. Needs paho-mqtt, and nothing else.

    python subscriber.py default/digits --node edge1 --once
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import queue
import re
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from chain import BrokenChainError, Checked, name_of
from connection import CONNECTED, Connection, add_arguments

ANSWER_SECONDS = 5.0
PAUSE_SECONDS = 0.1
"""Between requests: a node answers 20 a second, to all askers together."""
AFTER_ERROR_SECONDS = 1.0


class GaveUpError(Exception):
    """With --once: what was to be reached could not be; `code` is the exit code."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class Subscriber:
    """Follows one job of one node, on the thread of `run`.

    Of a head and of live events only the versions are believed; what counts is what the chain proves, and what does
    not follow is asked for.
    """

    def __init__(self, arguments: argparse.Namespace, connection: Connection, checked: Checked) -> None:
        namespace, name, node = *job_of(arguments.job), arguments.node
        self._head_topic = f"{arguments.root}/state/{node}/heads/{namespace}/{name}"
        self._event_topic = f"{arguments.root}/events/{node}/jobs/{namespace}/{name}"
        self._ask_topic = f"{arguments.root}/ask/{node}/history"
        self._answer_topic = f"{arguments.root}/answer/{node}/{connection.asker}"
        self._question = {"reply_to": connection.asker, "namespace": namespace, "name": name, "raw": True}
        self._once = arguments.once
        self._timeout = arguments.timeout

        self._connection = connection
        self._checked = checked
        self._is_connected = False
        self._head = 0
        """The highest version that a head named; 0 before there was one."""
        self._newest = 0
        """The highest version that was heard of, in heads and events."""
        self._must_ask = False
        """Whether something is to be asked even if no newer version was heard of."""
        self._hashes: dict[int, str] = {}
        """Heads of versions that are still to come: each must be what the chain says then."""
        self._request: str | None = None
        self._head_when_asked = 0
        self._not_before = 0.0
        self._deadline = 0.0
        self._has_said_so = False

    def run(self) -> None:
        """Follow until interrupted, or with --once until all that the head names is checked.

        BrokenChainError if the history is not what it claims to be, GaveUpError after --timeout without progress.
        """
        self._connection.start([self._head_topic, self._event_topic, self._answer_topic])
        try:
            self._follow()
        finally:
            self._checked.save()
            self._connection.stop()

    def _follow(self) -> None:
        gives_up_at = time.monotonic() + self._timeout
        while True:
            before = self._checked.version
            with contextlib.suppress(queue.Empty):
                self._take(self._connection.inbox.get(timeout=PAUSE_SECONDS))
            if self._checked.version > before:
                gives_up_at = time.monotonic() + self._timeout
            if self._is_complete():
                if not self._has_said_so:
                    print(f"at version {self._checked.version}, chain checked", flush=True)
                    self._has_said_so = True
                if self._once:
                    return
            elif self._is_connected:
                self._ask()
            if self._once and time.monotonic() > gives_up_at:
                raise self._reason_to_give_up()

    def _is_complete(self) -> bool:
        return self._head > 0 and max(self._head, self._newest) <= self._checked.version and not self._must_ask

    def _reason_to_give_up(self) -> GaveUpError:
        if not self._is_connected:
            return GaveUpError(6, "no connection to the broker")
        if not self._head:
            return GaveUpError(3, f"nothing is retained on {self._head_topic}: are node and job right?")
        return GaveUpError(6, f"the node does not answer on {self._answer_topic}")

    def _take(self, message: paho.MQTTMessage | str) -> None:
        if isinstance(message, str):
            self._connection_changed(message)
            return
        try:
            if message.topic == self._answer_topic:
                self._answered(json.loads(message.payload))
            elif message.topic == self._event_topic:
                self._told(bytes(message.payload))
            elif message.payload:
                self._head_said(json.loads(message.payload), is_retained=message.retain)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            note(f"{message.topic}: not understood: {error!r}")

    def _connection_changed(self, news: str) -> None:
        self._is_connected = news == CONNECTED
        self._request = None
        if not self._is_connected:
            note(news)
            if self._once and news != "disconnected":
                raise GaveUpError(6, news)

    def _head_said(self, head: dict[str, Any], *, is_retained: bool) -> None:
        """The node says how long its history is."""
        version, hash_ = int(head["version"]), str(head["hash"])
        self._head = max(self._head, version)
        self._newest = max(self._newest, version)
        if version > self._checked.version:
            self._hashes[version] = hash_
        elif version < self._checked.version:
            # It may lag a moment behind the events; or the node lost its history and begins it anew.
            self._must_ask |= is_retained
        elif hash_ != self._checked.hash:
            raise BrokenChainError(f"version {version} is not the one that was checked before: the head has {hash_}")

    def _told(self, payload: bytes) -> None:
        """A live event is taken if it is the next one and follows; else `_newest` has it asked for."""
        event = json.loads(payload)
        version = int(event["sequence"])
        self._newest = max(self._newest, version)
        if version == self._checked.version + 1 and self._checked.follows(event, stored_of(payload)):
            self._append(event)
            self._checked.save()

    def _ask(self) -> None:
        """Ask for what is lacking, and for the last version that is known, which must still be the same."""
        now = time.monotonic()
        if not self._newest or now < self._not_before or (self._request is not None and now < self._deadline):
            return
        self._request = secrets.token_hex(8)
        self._head_when_asked = self._head
        self._deadline = now + ANSWER_SECONDS
        self._has_said_so = False
        question = {**self._question, "request_id": self._request, "from_version": max(1, self._checked.version)}
        self._connection.publish(self._ask_topic, json.dumps(question), answer_topic=self._answer_topic)

    def _answered(self, answer: dict[str, Any]) -> None:
        if answer["request_id"] != self._request:
            return  # to an earlier request, or to another program that asks under the same name
        self._request = None
        self._not_before = time.monotonic() + PAUSE_SECONDS
        if answer["status"] != "ok":
            self._denied(str(answer["error"]["code"]), str(answer["error"]["message"]))
            return
        events = answer["data"]["events"]
        for event in events:
            self._check(event, base64.b64decode(event["stored"], validate=True))
        if events:
            self._checked.save()
        if answer["data"]["next_version"] is None:
            self._reached_the_end(is_empty=not events)

    def _denied(self, code: str, message: str) -> None:
        if code == "not_found" and self._checked.version:
            raise BrokenChainError(f"the node has no such history any more: {message}")
        if code == "not_found" and self._once:
            raise GaveUpError(3, message)
        self._not_before += AFTER_ERROR_SECONDS
        note(f"the node answers {code}: {message}")

    def _check(self, event: dict[str, Any], stored: bytes) -> None:
        version = event["sequence"]
        if version == self._checked.version:
            if event["hash"] != self._checked.hash:
                raise BrokenChainError(f"version {version} is not the one that was checked before")
        elif self._checked.follows(event, stored):
            self._append(event)
        elif version > self._checked.version:
            raise BrokenChainError(f"version {self._checked.version + 1} is missing, or its hash does not follow")

    def _reached_the_end(self, *, is_empty: bool) -> None:
        """The node has no more: events beyond that were none of its own, and no head can lie beyond it."""
        end = self._checked.version
        if is_empty or end < self._head_when_asked:
            known = max(end, self._head_when_asked)
            raise BrokenChainError(f"the node's history does not reach version {known}, which was there before")
        self._newest = max(end, self._head)
        self._must_ask = False

    def _append(self, event: dict[str, Any]) -> None:
        """Here a program would do something with the event: it is whole, checked, and comes in order, once.

        After a `kill -9` those that came since the file was last saved come again.
        """
        self._checked.take(event)
        if self._hashes.pop(self._checked.version, self._checked.hash) != self._checked.hash:
            raise BrokenChainError(f"version {self._checked.version} has another hash than the head that named it")
        print(f"{self._checked.version:6} {shown(event['time'])} {shown(name_of(event))}", flush=True)


def job_of(text: str) -> tuple[str, str]:
    """Namespace and name of `NAMESPACE/NAME`, or of `NAME` in `default`."""
    namespace, _, name = text.rpartition("/")
    return namespace or "default", name


def stored_of(payload: bytes) -> bytes:
    """The stored bytes in a live event: they are its `data`, byte for byte, and stand last."""
    return payload.partition(b',"data":')[2].removesuffix(b"}")


def shown(text: object) -> str:
    """Text of others, without what commands a terminal."""
    return re.sub(r"[^\w:.+-]", "?", str(text), flags=re.ASCII)


def note(words: str) -> None:
    """A line on standard error."""
    print(f"subscriber: {ascii(words)[1:-1]}", file=sys.stderr, flush=True)


def main() -> int:
    """Run until Ctrl-C; exit codes: 0 done, 2 usage, 3 no such job, 5 chain broken, 6 broker or node out of reach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", help="NAMESPACE/NAME, or NAME in the namespace default")
    parser.add_argument("--node", required=True, help="the edge node whose controller has the job")
    parser.add_argument("--state", type=Path, metavar="FILE", help="remembers what was checked (NAMESPACE.NAME.json)")
    parser.add_argument("--once", action="store_true", help="end once all that the head names is checked")
    parser.add_argument("--timeout", type=float, default=30.0, help="with --once: seconds without progress (30)")
    parser.add_argument("--root", default="sedna", help="root of all topics (default: sedna)")
    add_arguments(parser)
    arguments = parser.parse_args()
    namespace, name = job_of(arguments.job)
    try:
        checked = Checked(arguments.state or Path(f"{namespace}.{name}.json"), namespace, name)
        Subscriber(arguments, Connection(arguments), checked).run()
    except BrokenChainError as error:
        note(f"{arguments.job}: {error}")
        return 5
    except GaveUpError as error:
        note(str(error))
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
