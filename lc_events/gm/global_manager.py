"""The running global manager: one thread that takes in, decides, saves and says; the MQTT client's only queues."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from eventsourcing.persistence import PersistenceError

from lc_events.application.journal import open_journal
from lc_events.application.known import Recent
from lc_events.errors import IntegrityError, RefusedError, StoreError
from lc_events.gm.desk import Desk
from lc_events.gm.events import GM_EVENTS
from lc_events.gm.ledger import Ledger
from lc_events.gm.operators import Operators
from lc_events.gm.outbox import Outbox, Pauses
from lc_events.gm.upstream import Upstream
from lc_events.logs import set_mask
from lc_events.mqtt.client import Connected, MqttClient, Received
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import ParsedTopic, TopicKind, Topics
from lc_events.runtime.clock import Clock, SystemClock
from lc_events.runtime.lock import FolderLock
from lc_events.runtime.vault import SECRETS_FILE, Vault

__all__ = ["GlobalManager"]

STORE = "events.db"

_STORE_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_AT_ONCE = 50
"""Messages taken in before what is due is said."""

_DAY = 86_400.0
_KNOWN_FOR = 7 * _DAY
"""How long a message is known at least; an LC repeats what is not confirmed every 10 minutes."""

_log = logging.getLogger("lc_events.gm")


class GlobalManager:
    """Keeps jobs and datasets in `state_dir`, tells LCs of them, takes their reports, orders work of agents.

    What comes in is acknowledged to the broker once it is on disk; while the disk does not take it, everything waits.
    The MQTT settings must name a client id, for the session outlives the connection.
    """

    def __init__(
        self,
        state_dir: Path,
        mqtt: MqttSettings,
        *,
        topics: Topics | None = None,
        clock: Clock | None = None,
        pauses: Pauses | None = None,
    ) -> None:
        self._state_dir = state_dir
        self._topics = topics or Topics()
        self._clock = clock or SystemClock()
        self._pauses = pauses or Pauses()
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop_wanted = threading.Event()
        self._tidied_at = float("-inf")
        self._ledger: Ledger
        self._outbox: Outbox
        self._upstream: Upstream
        self._operators: Operators
        self._client = MqttClient(
            mqtt,
            subscriptions=self._topics.gm_subscriptions(),
            on_message=lambda received: self._inbox.put(partial(self._received, received)),
            on_connected=lambda connected: self._inbox.put(partial(self._connected, connected)),
        )

    def run(self) -> None:
        """Manage until `stop`.

        ConflictError if another process has the state folder, StoreError or IntegrityError if its store cannot be used.
        """
        lock = FolderLock(self._state_dir, "GM_STATE_DIR")
        try:
            journal = open_journal(self._state_dir / STORE, GM_EVENTS, write=True)
            try:
                self._manage(Ledger(journal))
            finally:
                journal.close()
        finally:
            lock.release()

    def stop(self) -> None:
        """End `run`, from any thread or a signal handler."""
        self._stop_wanted.set()
        self._inbox.put(lambda: None)

    def _manage(self, ledger: Ledger) -> None:
        vault = Vault(self._state_dir / SECRETS_FILE)
        vault.keep_only([*(state.stream for state in ledger.states() if state.is_live), *ledger.broken])
        set_mask(vault.masked)
        self._ledger = ledger
        self._outbox = Outbox(
            ledger, self._topics, self._clock, publish=self._client.publish, secrets=vault.get, pauses=self._pauses
        )
        recent = Recent(ledger.newest_known)
        desk = Desk(self._topics, ledger, self._outbox, vault, recent, self._clock, self._client.publish)
        self._upstream, self._operators = Upstream(desk), Operators(desk)
        for state in ledger.states():
            self._outbox.consider(state)
        self._client.start()
        try:
            while not self._stop_wanted.is_set():
                self._step()
        finally:
            self._outbox.finish()
            self._client.stop()
            _log.info("stopped")

    def _step(self) -> None:
        """Take in what has come, then say what is due."""
        due = self._outbox.next_due() if self._client.connected else None
        timeout = None if due is None else max(0.0, due - self._clock.monotonic())
        try:
            self._inbox.get(timeout=timeout)()
            for _ in range(_AT_ONCE):
                self._inbox.get_nowait()()
        except queue.Empty:
            pass
        if self._client.connected:
            self._outbox.send_due()
        self._tidy()

    def _tidy(self) -> None:
        """Once a day, forget messages that nobody repeats any more."""
        now = self._clock.monotonic()
        if now - self._tidied_at < _DAY:
            return
        self._tidied_at = now
        try:
            self._ledger.forget_known(self._clock.now().timestamp() - _KNOWN_FOR)
        except PersistenceError as error:
            _log.warning("old messages are forgotten another day: %s", error)

    def _connected(self, _: Connected) -> None:
        self._outbox.connected()

    def _received(self, received: Received) -> None:
        pause = iter(_STORE_PAUSES)
        while True:
            try:
                self._take_in(received)
            except (StoreError, PersistenceError, OSError) as error:
                _log.error("%s; nothing is acknowledged until it works again", error)
                if self._stop_wanted.wait(next(pause, _STORE_PAUSES[-1])):
                    return
            else:
                self._client.ack(received)
                return

    def _take_in(self, received: Received) -> None:
        """Take in a message; one that makes no sense, or that a defect of ours keeps out, must not come for ever."""
        try:
            self._dispatch(self._topics.parse(received.topic), received)
        except RefusedError as error:
            _log.warning("refused a message of %d bytes on %s: %s", len(received.payload), ascii(received.topic), error)
        except (StoreError, PersistenceError, OSError, IntegrityError):
            raise
        except Exception:  # noqa: BLE001 - the one message must not stop the others
            _log.exception("a message on %s could not be taken in", ascii(received.topic))

    def _dispatch(self, topic: ParsedTopic, received: Received) -> None:
        match topic.kind:
            case TopicKind.UP:
                self._upstream.report(topic, received)
            case TopicKind.STATE_JOB | TopicKind.STATE_DATASET:
                self._upstream.state(topic, received)
            case TopicKind.STATUS:
                self._upstream.birth(topic, received)
            case TopicKind.ERRORS:
                self._upstream.refusal(topic, received)
            case TopicKind.APPLY:
                self._operators.take(topic, received)
            case _:
                raise RefusedError("nothing is taken in on this topic", code="topic")
