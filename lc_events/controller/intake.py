"""MQTT messages as work for the committer: read, recognised, decided, and acknowledged once on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from lc_events.application.chain import event_id
from lc_events.application.recorder import Known
from lc_events.controller.clock import stamp
from lc_events.controller.known import Identity, Recent, identify
from lc_events.controller.refusals import Refusals
from lc_events.controller.transaction import Transaction
from lc_events.controller.vault import Vault
from lc_events.domain.dataset import confirm_dataset_reports, duplicate_dataset_message, receive_dataset_message
from lc_events.domain.decisions import (
    Facts,
    confirm_reports,
    receive_duplicate,
    receive_gm_message,
    receive_worker_result,
)
from lc_events.domain.job import JobState
from lc_events.errors import RefusedError
from lc_events.messages.gm import DownMessage, read_acknowledgement, read_down
from lc_events.messages.json import loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND, stream_id
from lc_events.messages.secrets import Secrets, separate
from lc_events.messages.worker import WorkerMessage, done, read_worker
from lc_events.mqtt.packets import Publication, Received
from lc_events.mqtt.topics import ParsedTopic, TopicKind, Topics

__all__ = ["Desk", "MessageWork", "Replies"]

LATE_RESULTS = timedelta(minutes=10)
"""How long after a delete the results of a job are still passed on."""


class Replies(Protocol):
    """What goes out besides the log: answers to single messages."""

    def publish(self, publication: Publication) -> None:
        """Publish once, if connected."""
        ...

    def refresh(self, stream: str) -> None:
        """Publish the latest values of a resource again, deleted or unknown ones as empty."""
        ...

    def report_again(self, stream: str, version: int) -> None:
        """GM asked again for what it had: at most once in 60 s."""
        ...


@dataclass(frozen=True)
class Desk:
    """What the taking in of messages needs."""

    node: str
    zone: str
    max_bytes: int
    topics: Topics
    refusals: Refusals
    vault: Vault
    recent: Recent
    replies: Replies
    event_hash: Callable[[str, int], str | None]
    acknowledge: Callable[[Received], None]
    tick_all: Callable[[Transaction, str, str | None], None]


class MessageWork:
    """One message from the broker; whatever happens to it, it is acknowledged after the commit that settles it."""

    def __init__(self, desk: Desk, received: Received, at: datetime) -> None:
        self._desk = desk
        self._received = received
        self._at = at
        self._now = stamp(at)
        self._refusal: RefusedError | None = None
        self._topic: ParsedTopic | None = None
        self._down: DownMessage | None = None
        self._secrets: Secrets = {}
        self._worker: WorkerMessage | None = None
        self._identity: Identity | None = None
        try:
            self._read()
        except RefusedError as error:
            self._refusal = error

    def announced(self) -> Collection[tuple[str, str]]:
        """The message's own identity, if it has an id."""
        identity = self._identity
        return [(identity.scope, identity.key)] if identity is not None and identity.has_id else []

    def carry_out(self, transaction: Transaction) -> None:
        """Decide what the message says, or refuse it."""
        transaction.then(lambda: self._desk.acknowledge(self._received))
        if self._refusal is None:
            try:
                self._decide(transaction)
            except RefusedError as error:
                self._refusal = error
        if self._refusal is not None:
            refusal = self._refusal
            transaction.then(lambda: self._refuse(refusal))

    def failed(self, error: Exception) -> None:
        """Refuse under the code `internal`, so that a message that we cannot handle does not come for ever."""
        self._refuse(RefusedError(f"a defect kept this from being decided: {error!r:.200}", code="internal"))
        self._desk.acknowledge(self._received)

    def _read(self) -> None:
        payload = self._received.payload
        topic = self._topic = self._desk.topics.parse(self._received.topic)
        if len(payload) > self._desk.max_bytes:
            raise RefusedError(f"{len(payload)} bytes are more than {self._desk.max_bytes}", code="too_large")
        match topic.kind:
            case TopicKind.DOWN:
                self._read_down(topic)
            case TopicKind.WORKER_INFO:
                self._worker = read_worker(payload, worker=topic.worker)
                scope = f"worker/{topic.worker}"
                content = self._worker.model_dump(by_alias=True, exclude={"id"})
                self._identity = identify(scope, self._worker.id, content, dup=self._received.dup)
            case TopicKind.DOWN_ACK | TopicKind.TICK:
                pass
            case _:
                raise RefusedError("nothing is taken in on this topic", code="topic")

    def _read_down(self, topic: ParsedTopic) -> None:
        message = read_down(
            self._received.payload, kind=topic.resource_kind, namespace=topic.namespace, name=topic.name
        )
        content, self._secrets = separate(message.content)
        self._down = DownMessage(
            message.id, message.operation, message.kind, message.namespace, message.name, content, message.resource
        )
        described = {"operation": message.operation, "content": content}
        self._identity = identify(message.stream, message.id, described, dup=self._received.dup)

    def _decide(self, transaction: Transaction) -> None:
        topic = self._topic
        if self._down is not None:
            self._take_down(transaction, self._down)
        elif self._worker is not None:
            self._take_result(transaction, self._worker)
        elif topic is not None and topic.kind is TopicKind.DOWN_ACK:
            self._take_acknowledgement(transaction)
        elif topic is not None:
            self._take_tick(transaction)

    def _is_repeat(self, transaction: Transaction, context: str) -> bool:
        identity = self._identity
        if identity is None:
            return False
        if identity.has_id:
            return transaction.is_known(identity.scope, identity.key)
        return self._desk.recent.is_repeat(identity, context)

    def _remember(self, transaction: Transaction, context: str) -> None:
        identity = self._identity
        if identity is None:
            return
        known = Known(identity.scope, identity.key, context, self._at.timestamp())
        transaction.know(known)
        if not identity.has_id:
            self._desk.recent.remember(known)

    def _take_down(self, transaction: Transaction, message: DownMessage) -> None:
        stream = message.stream
        transaction.then(lambda: self._desk.replies.refresh(stream))
        is_job = message.kind == JOB_KIND
        state = transaction.job(stream) if is_job else transaction.dataset(stream)
        if message.operation != "delete" and self._secrets != self._desk.vault.get(stream):
            secrets = self._secrets
            self._desk.vault.put(stream, secrets)
        if state.version == 0 and message.operation == "delete":
            return
        if self._is_repeat(transaction, ""):
            if isinstance(state, JobState):
                transaction.keep(receive_duplicate(state, message.id, None, self._now))
                self._report_again(transaction, transaction.job(stream))
            else:
                transaction.keep(duplicate_dataset_message(state, message.id, self._now))
            return
        if isinstance(state, JobState):
            self._check_output(transaction, message)
            before = state
            dataset = transaction.dataset(stream_id(message.namespace, DATASET_KIND, _dataset_name(message, state)))
            transaction.keep(receive_gm_message(state, message, Facts(self._now, self._desk.zone, dataset.note)))
            if transaction.job(stream).reports == before.reports:
                self._report_again(transaction, transaction.job(stream))
        else:
            transaction.keep(receive_dataset_message(state, message, self._now))
        self._remember(transaction, "")
        if message.operation == "delete":
            transaction.then(lambda: self._desk.vault.drop(stream))

    def _report_again(self, transaction: Transaction, job: JobState) -> None:
        """A waiting condition that was answered already gets its old report again."""
        report = None if job.waiting is None or not job.is_live else job.report_of(job.waiting)
        if report is not None:
            version = report.version
            transaction.then(lambda: self._desk.replies.report_again(job.stream, version))

    def _check_output(self, transaction: Transaction, message: DownMessage) -> None:
        if message.operation == "delete":
            return
        spec = message.content["spec"]
        output_dir = str(spec["outputDir"]).rstrip("/") if isinstance(spec, dict) else ""
        owner = transaction.owner_of(output_dir)
        if owner is not None and owner != message.stream:
            raise RefusedError(f"outputDir {output_dir} belongs to the live job {owner}", code="conflict")

    def _take_result(self, transaction: Transaction, message: WorkerMessage) -> None:
        stream = stream_id(message.namespace, JOB_KIND, message.owner_name)
        job = transaction.job(stream)
        if job.version == 0:
            raise RefusedError(f"job {message.namespace}/{message.owner_name} is not known here", code="unknown_job")
        if self._is_repeat(transaction, job.conditions_hash):
            transaction.keep(receive_duplicate(job, message.id, message.name, self._now))
            return
        if job.deleted_at is not None and self._at - datetime.fromisoformat(job.deleted_at) > LATE_RESULTS:
            raise RefusedError(f"job {message.namespace}/{message.owner_name} was deleted", code="deleted_job")
        transaction.keep(receive_worker_result(job, message, self._now))
        self._remember(transaction, job.conditions_hash)

    def _take_acknowledgement(self, transaction: Transaction) -> None:
        versions: dict[str, list[int]] = {}
        for report_id in read_acknowledgement(self._received.payload).ids:
            if (named := _read_event_id(report_id, self._desk)) is not None:
                versions.setdefault(named[0], []).append(named[1])
        for stream, confirmed in versions.items():
            if stream.split("/")[1] == JOB_KIND:
                transaction.keep(confirm_reports(transaction.job(stream), confirmed, self._now))
            else:
                transaction.keep(confirm_dataset_reports(transaction.dataset(stream), confirmed, self._now))

    def _take_tick(self, transaction: Transaction) -> None:
        given = loads_object(self._received.payload).get("time")
        as_of = None
        if given is not None:
            try:
                as_of = stamp(datetime.fromisoformat(str(given)))
            except (ValueError, OverflowError):
                raise RefusedError(f"time {str(given)[:40]!r} is not RFC 3339") from None
        self._desk.tick_all(transaction, self._now, as_of)

    def _refuse(self, refusal: RefusedError) -> None:
        topic, message_id = self._topic, self._message_id()
        self._desk.refusals.refuse(
            time=self._now,
            topic=self._received.topic,
            payload=self._received.payload,
            code=refusal.code,
            error=str(refusal),
            message_id=message_id,
        )
        if topic is not None and topic.kind is TopicKind.WORKER_INFO and refusal.code != "unknown_job":
            target = self._desk.topics.worker_done(self._desk.node, topic.worker)
            self._desk.replies.publish(Publication(target, done(message_id, refusal.code)))

    def _message_id(self) -> str | None:
        """The id of a message, as far as it can be read although it was refused."""
        try:
            message_id = loads_object(self._received.payload).get("id")
        except RefusedError:
            return None
        return message_id if isinstance(message_id, str) and len(message_id) <= 256 else None


def _dataset_name(message: DownMessage, state: JobState) -> str:
    spec = message.content.get("spec")
    dataset = spec.get("dataset") if isinstance(spec, dict) else None
    name = dataset.get("name") if isinstance(dataset, dict) else None
    return str(name or state.dataset_name or "-")


_EVENT_ID = re.compile(r"([^/]+)/(([^/]+)/([^/]+)/([^/]+))/([1-9][0-9]{0,17})-([0-9a-f]{12})")


def _read_event_id(text: str, desk: Desk) -> tuple[str, int] | None:
    """Stream and version of one of our event ids; None for an id that is not of this store's history."""
    match = _EVENT_ID.fullmatch(text)
    if match is None or match[1] != desk.node or match[4] not in (JOB_KIND, DATASET_KIND):
        return None
    version = int(match[6])
    hash_ = desk.event_hash(match[2], version)
    known = hash_ is not None and event_id(desk.node, match[2], version, hash_) == text
    return (match[2], version) if known else None
