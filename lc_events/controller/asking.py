"""Requests over MQTT: answered from the store beside the committer, at most 20 a second and half of a thread's time."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lc_events.application.audit.answers import MAX_BYTES, answer
from lc_events.application.audit.archive import Archive, do_not_yield
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.journal import STORE_ERRORS, open_journal
from lc_events.controller.proofs import Outcome, Proofs, Yield
from lc_events.domain.stamp import stamp
from lc_events.errors import LcError, RefusedError, StoreError
from lc_events.messages.requests import Ask, read_addressee, read_ask, write_answer
from lc_events.mqtt.packets import Publication, Received
from lc_events.mqtt.topics import TopicKind, Topics
from lc_events.runtime.clock import Clock
from lc_events.runtime.rate import Rate
from lc_events.runtime.share import Share

__all__ = ["Asking"]

_log = logging.getLogger("lc_events.asking")

_WAITING = 100
_PER_SECOND = 20
_SHARE = 0.5
_LONG = ("verify",)
"""Verbs that read a whole history."""


class _Asker(NamedTuple):
    """Where an answer goes, and what tells its receiver which request it is of."""

    topic: str
    request_id: str | None
    correlation: bytes | None


class Asking:
    """Every request gets an answer with a code and a hint; one without a reply address goes to `sedna/errors/NODE`.

    Requests are acknowledged as they come: an asker that gets no answer asks again. How much work they are is bounded,
    too: other requests do not wait for one that reads a whole history, and nothing else here waits for any of them.
    """

    def __init__(
        self,
        *,
        node: str,
        topics: Topics,
        store: Path,
        clock: Clock,
        publish: Callable[[Publication], None],
        refuse: Callable[[Received, RefusedError], None],
    ) -> None:
        """StoreError if the store cannot be opened to read."""
        self._node = node
        self._topics = topics
        self._clock = clock
        self._publish = publish
        self._refuse = refuse
        self._archive = Archive(open_journal(store, CONTROLLER.registry), CONTROLLER, node)
        self._stopped = threading.Event()
        self._rate = Rate(per_second=_PER_SECOND, burst=_PER_SECOND, monotonic=clock.monotonic)
        self._share = Share(_SHARE, monotonic=clock.monotonic, wait=self._stopped.wait)
        self._proofs = Proofs(monotonic=clock.monotonic)
        self._queue: queue.Queue[tuple[Received, str] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="asking", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._proofs.start()
        self._thread.start()

    def stop(self) -> None:
        """End after the answer that is being made; one that takes long is given up."""
        self._stopped.set()
        with suppress(queue.Full):  # at a full queue it does not wait
            self._queue.put_nowait(None)
        self._proofs.stop()
        self._thread.join(5)
        self._archive.journal.close()

    def offer(self, received: Received, verb: str) -> None:
        """Take a request; beyond the rate it is answered at once with the code `rate`. Any thread; does not wait."""
        if not self._rate.allows():
            self._turn_away(received, f"more than {_PER_SECOND} requests a second")
            return
        try:
            self._queue.put_nowait((received, verb))
        except queue.Full:
            self._turn_away(received, f"{_WAITING} requests wait already")

    def _run(self) -> None:
        while not self._stopped.is_set() and (asked := self._queue.get()) is not None:
            self._share.begin()
            try:
                self._take(*asked)
            except Exception:  # noqa: BLE001 - one request must not end the answering
                _log.exception("%s: no answer", asked[0].topic)
            self._share.yield_to_others()

    def _take(self, received: Received, verb: str) -> None:
        try:
            asker = self._asker(received)
        except RefusedError as nobody:
            self._refuse(received, nobody)
            return
        try:
            ask = read_ask(received.payload)
            if verb in _LONG:
                key = (verb, ask.namespace, ask.name)
                self._proofs.ask(key, partial(self._outcome, verb, ask), partial(self._reply, asker))
            else:
                self._reply(asker, self._outcome(verb, ask, do_not_yield))
        except LcError as error:
            self._reply(asker, error)

    def _outcome(self, verb: str, ask: Ask, yield_to_others: Yield) -> Outcome:
        """The data of an answer, or why there is none."""
        try:
            return answer(self._archive, verb, ask, now=stamp(self._clock.now()), yield_to_others=yield_to_others)
        except LcError as error:
            return error
        except STORE_ERRORS as error:
            return StoreError(f"the event store cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - whoever asked is told of a defect, too
            _log.exception("%s of %s/%s", verb, ask.namespace, ask.name)
            return RefusedError(f"a defect: {error!r:.200}", code="internal")

    def _reply(self, asker: _Asker, outcome: Outcome) -> None:
        self._publish(Publication(asker.topic, _payload(asker.request_id, outcome), correlation=asker.correlation))

    def _turn_away(self, received: Received, why: str) -> None:
        """Answer a request that was not taken in; refuse it where there is nobody to answer to."""
        try:
            asker = self._asker(received)
        except RefusedError as nobody:
            self._refuse(received, nobody)
        else:
            self._reply(asker, RefusedError(f"{why}: ask again later", code="rate"))

    def _asker(self, received: Received) -> _Asker:
        """Who is answered; RefusedError if neither MQTT 5 nor the payload says."""
        request_id, reply_to = None, None
        try:
            request_id, reply_to = read_addressee(received.payload)
        except RefusedError:
            if not self._is_answer_topic(received.response_topic):
                raise
        if received.response_topic is not None and self._is_answer_topic(received.response_topic):
            return _Asker(received.response_topic, request_id, received.correlation)
        if reply_to is None:
            raise RefusedError(
                f"nobody to answer to: reply_to, or a response topic below {self._topics.root}/answer/{self._node}/",
                code="reply_to",
            )
        return _Asker(self._topics.answer(self._node, reply_to), request_id, received.correlation)

    def _is_answer_topic(self, topic: str | None) -> bool:
        try:
            parsed = self._topics.parse(topic or "")
        except RefusedError:
            return False
        return parsed.kind is TopicKind.ANSWER and parsed.node == self._node


def _payload(request_id: str | None, outcome: Outcome) -> bytes:
    """An answer; in place of data that are too much for one, an error that says so."""
    if isinstance(outcome, LcError):
        return write_answer(request_id, error=(outcome.code, str(outcome)))
    payload = write_answer(request_id, data=outcome)
    if len(payload) <= MAX_BYTES:
        return payload
    much = f"the answer would be {len(payload)} bytes, more than {MAX_BYTES}"
    return write_answer(request_id, error=("too_large", much))
