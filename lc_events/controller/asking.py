"""Requests over MQTT: answered from the store by a thread of its own, beside the committer, at most 20 a second."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from lc_events.application.audit.answers import MAX_BYTES, answer
from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.journal import open_journal
from lc_events.domain.events import LC_EVENTS, Registry
from lc_events.errors import LcError, RefusedError
from lc_events.messages.requests import read_addressee, read_ask, write_answer
from lc_events.mqtt.packets import Publication, Received
from lc_events.mqtt.topics import TopicKind, Topics
from lc_events.runtime.rate import Rate

__all__ = ["Asking"]

_log = logging.getLogger("lc_events.asking")

_WAITING = 100
_PER_SECOND = 20


class Asking:
    """Every request gets an answer with a code and a hint; one that says nobody to answer to is refused aloud.

    Requests are acknowledged as they come: an asker that gets no answer asks again.
    """

    def __init__(
        self,
        *,
        node: str,
        topics: Topics,
        store: Path,
        monotonic: Callable[[], float],
        publish: Callable[[Publication], None],
        refuse: Callable[[Received, RefusedError], None],
    ) -> None:
        self._node = node
        self._topics = topics
        self._store = store
        self._publish = publish
        self._refuse = refuse
        self._rate = Rate(per_second=_PER_SECOND, burst=_PER_SECOND, monotonic=monotonic)
        self._queue: queue.Queue[tuple[Received, str] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="asking", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End after the answer that is being made."""
        self._queue.put(None)
        self._thread.join(5)

    def offer(self, received: Received, verb: str) -> None:
        """Take a request; beyond the rate it is answered at once with the code `rate`. Any thread; does not wait."""
        if self._rate.allows():
            try:
                self._queue.put_nowait((received, verb))
            except queue.Full:
                self._reject(received, RefusedError("100 requests wait already: ask again later", code="rate"))
        else:
            self._reject(received, RefusedError("more than 20 requests a second: ask again later", code="rate"))

    def _run(self) -> None:
        journal = open_journal(self._store, Registry(LC_EVENTS))
        archive = Archive(journal, CONTROLLER, self._node)
        while (asked := self._queue.get()) is not None:
            received, verb = asked
            try:
                self._answer(archive, received, verb)
            except LcError as error:
                self._reject(received, error)
            except Exception as error:  # noqa: BLE001 - one request must not end the answering
                _log.exception("%s", received.topic)
                self._reject(received, RefusedError(f"a defect: {error!r:.200}", code="internal"))
        journal.close()

    def _answer(self, archive: Archive, received: Received, verb: str) -> None:  # type: ignore[type-arg]
        target, request_id = self._addressee(received)
        payload = write_answer(request_id, data=answer(archive, verb, read_ask(received.payload)))
        if len(payload) > MAX_BYTES:
            raise RefusedError(f"the answer would be {len(payload)} bytes, more than {MAX_BYTES}", code="too_large")
        self._publish(Publication(target, payload, correlation=received.correlation))

    def _reject(self, received: Received, error: LcError) -> None:
        """Answer with an error; where there is nobody to answer to, refuse."""
        try:
            target, request_id = self._addressee(received)
        except RefusedError as nobody:
            self._refuse(received, nobody)
            return
        payload = write_answer(request_id, error=(error.code, str(error)))
        self._publish(Publication(target, payload, correlation=received.correlation))

    def _addressee(self, received: Received) -> tuple[str, str | None]:
        """Where the answer goes, and the request's id; RefusedError if neither MQTT 5 nor the payload says."""
        request_id, reply_to = None, None
        try:
            request_id, reply_to = read_addressee(received.payload)
        except RefusedError:
            if not self._is_answer_topic(received.response_topic):
                raise
        if received.response_topic is not None and self._is_answer_topic(received.response_topic):
            return received.response_topic, request_id
        if reply_to is None:
            raise RefusedError(
                f"nobody to answer to: reply_to, or a response topic below {self._topics.root}/answer/{self._node}/",
                code="reply_to",
            )
        return self._topics.answer(self._node, reply_to), request_id

    def _is_answer_topic(self, topic: str | None) -> bool:
        try:
            parsed = self._topics.parse(topic or "")
        except RefusedError:
            return False
        return parsed.kind is TopicKind.ANSWER and parsed.node == self._node
