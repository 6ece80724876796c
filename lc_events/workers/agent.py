"""The worker agent of a node: takes work orders from the broker, runs them, and reports until that is confirmed."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

from pydantic import ValidationError

from lc_events.domain.pauses import pause_after
from lc_events.errors import BrokerError, RefusedError, StorageError
from lc_events.messages.gm import explain
from lc_events.messages.json import loads_object
from lc_events.messages.worker import CancelOrder, Done, WorkOrder, read_order
from lc_events.mqtt.client import Connected, MqttClient, Publication, Received
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import TopicKind, Topics
from lc_events.runtime.lock import FolderLock
from lc_events.storage import S3Clients
from lc_events.workers.execution import Execution
from lc_events.workers.journal import Journal, Run
from lc_events.workers.outcome import Outcome
from lc_events.workers.processes import ProcessIdentity
from lc_events.workers.scheduler import Scheduler
from lc_events.workers.settings import AgentSettings

__all__ = ["WorkerAgent"]

_STOP_SECONDS = 10.0

_log = logging.getLogger(__name__)


class WorkerAgent:
    """Runs the work orders of `sedna/work/NODE/+` on this node and reports on `sedna/worker/NODE/WORKER/info`.

    Everything is on disk below `settings.state_dir` before it is acknowledged or reported, so that the agent may be
    killed at any moment: programs that were interrupted are ended and run again (a program is run at least once),
    reports are repeated with the same ids. The MQTT settings must name a client id.
    """

    def __init__(self, settings: AgentSettings, mqtt: MqttSettings, *, topics: Topics | None = None) -> None:
        self._settings = settings
        self._topics = topics or Topics()
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop_wanted = threading.Event()
        self._turns = threading.Semaphore(settings.concurrency)
        self._clients = S3Clients(ca_file=settings.s3_ca_file, timeout=settings.s3_timeout_seconds)
        self._scheduler: Scheduler
        self._client = MqttClient(
            mqtt,
            subscriptions=self._topics.agent_subscriptions(settings.node),
            on_message=lambda received: self._inbox.put(partial(self._received, received)),
            on_connected=lambda connected: self._inbox.put(partial(self._connected, connected)),
        )

    def run(self) -> None:
        """Work until `stop`; ConflictError if another agent uses the state folder, StorageError if it is unusable."""
        folder = self._settings.state_dir
        with FolderLock(folder, "WORKER_STATE_DIR"):
            journal = Journal(folder)
            self._scheduler = Scheduler(journal, concurrency=self._settings.concurrency, execution=self._execution_of)
            self._scheduler.recover()
            self._client.start()
            try:
                while not self._stop_wanted.is_set():
                    self._step()
            finally:
                self._scheduler.stop(self._settings.grace_seconds + _STOP_SECONDS)
                self._finish()
                self._client.stop()
                _log.info("stopped; %d reports wait for the local controller", len(self._scheduler.outbox))

    def stop(self) -> None:
        """End `run`, from any thread or a signal handler; running programs are ended, and run again next time."""
        self._stop_wanted.set()
        self._inbox.put(lambda: None)

    def _step(self) -> None:
        """Handle one thing that happened, or say what is due."""
        due = self._scheduler.outbox.next_due() if self._client.connected else None
        timeout = None if due is None else max(0.0, due - time.monotonic())
        try:
            handle = self._inbox.get(timeout=timeout)
        except queue.Empty:
            self._send_due()
            return
        self._insist(handle)
        if self._inbox.empty():
            self._send_due()

    def _insist(self, handle: Callable[[], None]) -> None:
        """Try again until it can be written to disk; meanwhile nothing is acknowledged, so nothing is lost."""
        for attempt in count(1):
            if self._tried(handle) or self._stop_wanted.wait(pause_after(attempt)):
                return

    def _tried(self, handle: Callable[[], None]) -> bool:
        try:
            handle()
        except StorageError as error:
            _log.error("%s; nothing is acknowledged until the disk takes it", error)
            return False
        return True

    def _send_due(self) -> None:
        outbox = self._scheduler.outbox
        for report in outbox.due(time.monotonic()):
            topic = self._topics.worker_info(self._settings.node, report.run.worker)
            try:
                self._client.publish(Publication(topic, report.payload))
            except BrokerError as error:
                _log.debug("report %s: %s", report.id, error)
            outbox.sent(report, time.monotonic())

    def _finish(self) -> None:
        """Keep what happened while the programs ended; what cannot be written now is run again next time."""
        with suppress(queue.Empty):
            while True:
                self._tried(self._inbox.get_nowait())
        self._send_due()

    def _connected(self, _: Connected) -> None:
        self._scheduler.outbox.connected()

    def _received(self, received: Received) -> None:
        try:
            topic = self._topics.parse(received.topic)
            if topic.kind is TopicKind.WORKER_DONE:
                done = _read_done(received.payload)
                self._scheduler.confirmed(done.id or "", done.error)
            else:
                self._ordered(topic.worker, received.payload)
        except RefusedError as error:
            _log.warning("refused a message of %d bytes on %s: %s", len(received.payload), ascii(received.topic), error)
        self._client.ack(received)

    def _ordered(self, worker: str, payload: bytes) -> None:
        try:
            order = read_order(payload)
        except RefusedError as error:
            self._scheduler.accept(worker, _who_ordered(payload), refusal=f"the work order is refused: {error}")
            return
        if isinstance(order, CancelOrder):
            self._scheduler.cancel(worker, order.id)
        else:
            self._scheduler.accept(worker, order)

    def _execution_of(self, run: Run) -> Execution:
        return Execution(
            run,
            self._settings,
            on_started=self._started,
            on_finished=self._finished,
            on_turn_over=lambda: self._inbox.put(self._scheduler.turn_over),
            turns=self._turns,
            clients=self._clients,
        )

    def _started(self, run: Run, process: ProcessIdentity) -> None:
        self._inbox.put(lambda: self._scheduler.started(run, process))

    def _finished(self, run: Run, outcome: Outcome | None) -> None:
        self._inbox.put(lambda: self._scheduler.finished(run, outcome))


def _read_done(payload: bytes) -> Done:
    try:
        return Done.model_validate(loads_object(payload))
    except ValidationError as error:
        raise RefusedError(explain(error)) from None


def _who_ordered(payload: bytes) -> WorkOrder:
    """As much of a bad order as a report on it needs; RefusedError if not even that can be read."""
    data = loads_object(payload)
    named = {name: data[name] for name in ("id", "namespace", "job", "stage", "round") if name in data}
    try:
        return WorkOrder.model_validate({**named, "command": ["-"]})
    except ValidationError as error:
        raise RefusedError(f"not a work order: {explain(error)}") from None
