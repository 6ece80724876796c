"""Messages from the broker as work for the committer: read at the door, decided, acknowledged once on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lc_events.application.known import Identity, Recent
from lc_events.application.recorder import Known
from lc_events.controller.refusals import Refusals
from lc_events.controller.transaction import Transaction
from lc_events.domain.stamp import stamp
from lc_events.errors import RefusedError
from lc_events.messages.json import loads_object
from lc_events.mqtt.packets import Publication, Received
from lc_events.mqtt.topics import ParsedTopic, Topics
from lc_events.runtime.vault import Vault

__all__ = ["Desk", "Message", "MessageWork", "RefusedWork", "Replies"]


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
    real_place: Callable[[str], str]
    """Output URL to the folder behind it, links followed."""
    settle: Callable[[str], None]
    """Keep to the folder behind a job's output URL as it is now; RefusedError if it cannot be a job's."""
    recent: Recent
    replies: Replies
    event_hashes: Callable[[str, Sequence[int]], Mapping[int, str]]
    acknowledge: Callable[[Received], None]
    tick_all: Callable[[Transaction, str, str | None], None]
    may_tick: Callable[[], bool]
    model_places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Message:
    """A message as it came, and where and when."""

    received: Received
    topic: ParsedTopic
    at: datetime

    @property
    def now(self) -> str:
        """The receipt, as events carry it."""
        return stamp(self.at)


class MessageWork(ABC):
    """One message; whatever happens to it, it is acknowledged after the commit that settles it."""

    identity: Identity | None = None

    def __init__(self, desk: Desk, message: Message) -> None:
        self.desk = desk
        self.message = message

    @abstractmethod
    def decide(self, transaction: Transaction) -> None:
        """Decide what the message says; a RefusedError is raised before anything is kept."""

    def refused(self, refusal: RefusedError, message_id: str | None) -> None:  # noqa: B027 - most senders do not wait
        """Tell a sender that waits for an answer."""

    def announced(self) -> Collection[tuple[str, str]]:
        """The message's own identity, if it has an id."""
        identity = self.identity
        return [(identity.scope, identity.key)] if identity is not None and identity.has_id else []

    def carry_out(self, transaction: Transaction) -> None:
        """Decide, or refuse; then acknowledge."""
        try:
            self.decide(transaction)
        except RefusedError as error:
            refusal = error
            transaction.then(lambda: self._refuse(refusal))
        transaction.then(lambda: self.desk.acknowledge(self.message.received))

    def failed(self, error: Exception) -> None:
        """Refuse under the code `internal`, so that a message that we cannot handle does not come for ever."""
        self._refuse(RefusedError(f"a defect kept this from being decided: {type(error).__name__}", code="internal"))
        self.desk.acknowledge(self.message.received)

    def is_repeat(self, transaction: Transaction, context: str = "") -> bool:
        """Whether the message was taken in before; for one without an id, `context` must be the same too."""
        identity = self.identity
        if identity is None:
            return False
        if identity.has_id:
            return transaction.is_known(identity.scope, identity.key)
        return self.desk.recent.is_repeat(identity, context, transaction.recent(identity.scope))

    def remember(self, transaction: Transaction, context: str = "") -> None:
        """Know the message from this commit on."""
        identity = self.identity
        if identity is None:
            return
        known = Known(identity.scope, identity.key, context, self.message.at.timestamp())
        transaction.know(known)
        if not identity.has_id:
            transaction.then(lambda: self.desk.recent.remember(known))

    def _refuse(self, refusal: RefusedError) -> None:
        received = self.message.received
        message_id = _id_of(received.payload)
        self.desk.refusals.refuse(
            time=self.message.now,
            topic=received.topic,
            payload=received.payload,
            code=refusal.code,
            error=str(refusal),
            message_id=message_id,
        )
        self.refused(refusal, message_id)


class RefusedWork(MessageWork):
    """A message that could not even be read."""

    def __init__(self, desk: Desk, message: Message, refusal: RefusedError, done: Callable[[str | None], None]) -> None:
        super().__init__(desk, message)
        self._refusal = refusal
        self._done = done

    def decide(self, transaction: Transaction) -> None:  # noqa: ARG002 - nothing to keep
        """Refuse."""
        raise self._refusal

    def refused(self, _refusal: RefusedError, message_id: str | None) -> None:
        """Tell the sender, if its kind waits."""
        self._done(message_id)


def _id_of(payload: bytes) -> str | None:
    """The id of a message, as far as it can be read although it was refused."""
    try:
        message_id = loads_object(payload).get("id")
    except RefusedError:
        return None
    return message_id if isinstance(message_id, str) and len(message_id) <= 256 else None
