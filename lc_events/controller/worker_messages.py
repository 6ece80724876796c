"""What workers report: recorded, passed on verbatim, and settled by `done`."""

from __future__ import annotations

from datetime import datetime, timedelta

from lc_events.application.known import identify
from lc_events.controller.intake import Desk, Message, MessageWork
from lc_events.controller.transaction import Transaction
from lc_events.domain.decisions import receive_duplicate, receive_worker_result
from lc_events.errors import RefusedError
from lc_events.messages.names import JOB_KIND, stream_id
from lc_events.messages.worker import done, read_worker
from lc_events.mqtt.packets import Publication

__all__ = ["ResultWork", "tell_worker"]

LATE_RESULTS = timedelta(minutes=10)
"""How long after a delete the results of a job are still passed on."""
_UNKNOWN_JOB = "unknown_job"


def tell_worker(desk: Desk, worker: str, message_id: str | None, code: str) -> None:
    """Say `done` with an error; a result for a job that is not known yet gets none, so that it comes again."""
    if code != _UNKNOWN_JOB:
        desk.replies.publish(Publication(desk.topics.worker_done(desk.node, worker), done(message_id, code)))


class ResultWork(MessageWork):
    """A worker's report."""

    def __init__(self, desk: Desk, message: Message) -> None:
        """RefusedError if it is not one of CONTRACT section 3."""
        super().__init__(desk, message)
        self._result = read_worker(message.received.payload, worker=message.topic.worker)
        content = self._result.model_dump(by_alias=True, exclude={"id"})
        self.identity = identify(f"worker/{self._result.name}", self._result.id, content, dup=message.received.dup)

    def decide(self, transaction: Transaction) -> None:
        """Record it for its job; RefusedError for a job that is not here, or no more."""
        result = self._result
        job = transaction.job(stream_id(result.namespace, JOB_KIND, result.owner_name))
        if job.version == 0:
            raise RefusedError(f"job {result.namespace}/{result.owner_name} is not known here", code=_UNKNOWN_JOB)
        if self.is_repeat(transaction, job.conditions_hash):
            transaction.keep(receive_duplicate(job, result.id, result.name, self.message.now))
            return
        if job.deleted_at is not None and self.message.at - datetime.fromisoformat(job.deleted_at) > LATE_RESULTS:
            raise RefusedError(f"job {result.namespace}/{result.owner_name} was deleted", code="deleted_job")
        transaction.keep(receive_worker_result(job, result, self.message.now))
        self.remember(transaction, job.conditions_hash)

    def refused(self, refusal: RefusedError, message_id: str | None) -> None:
        """Tell the worker."""
        tell_worker(self.desk, self.message.topic.worker, message_id, refusal.code)
