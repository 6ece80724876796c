"""Which work a message is: by its topic, before anything is decided."""

from __future__ import annotations

import logging
import traceback
from datetime import datetime

from lc_events.controller.gm_messages import AcknowledgementWork, ResourceWork
from lc_events.controller.intake import Desk, Message, MessageWork, RefusedWork
from lc_events.controller.transaction import Transaction
from lc_events.controller.worker_messages import ResultWork, tell_worker
from lc_events.domain.stamp import stamp
from lc_events.errors import RefusedError
from lc_events.messages.json import loads_object
from lc_events.mqtt.packets import Received
from lc_events.mqtt.topics import ParsedTopic, TopicKind

__all__ = ["TickMessageWork", "read_message"]

_log = logging.getLogger("lc_events.intake")


class TickMessageWork(MessageWork):
    """An operator asks for one tick of every waiting job."""

    def __init__(self, desk: Desk, message: Message) -> None:
        """RefusedError if the payload is neither `{}` nor `{"time": RFC 3339}`, or ticks come too fast."""
        super().__init__(desk, message)
        given = loads_object(message.received.payload).get("time")
        self._as_of = None if given is None else _moment(given)
        if not desk.may_tick():
            raise RefusedError("more than 10 external ticks a second", code="rate")

    def decide(self, transaction: Transaction) -> None:
        """Tick."""
        self.desk.tick_all(transaction, self.message.now, self._as_of)


class ClearingWork(MessageWork):
    """Somebody clears a topic of what was retained there: it says nothing to us."""

    def decide(self, transaction: Transaction) -> None:
        """Nothing."""


def _moment(given: object) -> str:
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise RefusedError(f"time {str(given)[:40]!r} is not RFC 3339 with an offset")
    try:
        return stamp(moment)
    except OverflowError:
        raise RefusedError(f"time {str(given)[:40]!r} is out of range") from None


_WORK: dict[TopicKind, type[ResourceWork | AcknowledgementWork | ResultWork | TickMessageWork]] = {
    TopicKind.DOWN: ResourceWork,
    TopicKind.DOWN_ACK: AcknowledgementWork,
    TopicKind.WORKER_INFO: ResultWork,
    TopicKind.TICK: TickMessageWork,
}


def read_message(desk: Desk, received: Received, at: datetime) -> MessageWork:
    """The work of a message; one that cannot be read is work too: it is refused and acknowledged."""
    topic = ParsedTopic(TopicKind.ERRORS)
    try:
        topic = desk.topics.parse(received.topic)
        return _work(desk, Message(received, topic, at))
    except RefusedError as error:
        refusal = error
    except Exception as error:  # noqa: BLE001 - what we cannot read must not come again with every connection
        # neither the message nor what is said of it: a secret may stand in it that nobody has taken out yet
        where = traceback.extract_tb(error.__traceback__)[-1]
        _log.error("%s: %s at %s line %s", received.topic[:200], type(error).__name__, where.filename, where.lineno)
        refusal = RefusedError(f"a defect kept this from being read: {type(error).__name__}", code="internal")

    def tell(message_id: str | None) -> None:
        if topic.kind is TopicKind.WORKER_INFO:
            tell_worker(desk, topic.worker, message_id, refusal.code)

    return RefusedWork(desk, Message(received, topic, at), refusal, tell)


def _work(desk: Desk, message: Message) -> MessageWork:
    if message.received.retain:
        if not message.received.payload:
            return ClearingWork(desk, message)
        raise RefusedError("it would come again with every connection; publish it without retain", code="retained")
    size = len(message.received.payload)
    if size > desk.max_bytes:
        raise RefusedError(f"{size} bytes are more than {desk.max_bytes}", code="too_large")
    work = _WORK.get(message.topic.kind)
    if work is None:
        raise RefusedError("nothing is taken in on this topic", code="topic")
    return work(desk, message)
