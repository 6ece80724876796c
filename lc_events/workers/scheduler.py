"""Which accepted orders run now, what replaces what, what is reported; all calls come from one thread."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lc_events.messages.worker import WorkOrder, failure_words
from lc_events.workers.execution import Execution, StopReason
from lc_events.workers.journal import Journal, Run
from lc_events.workers.outcome import Outcome
from lc_events.workers.processes import ProcessIdentity
from lc_events.workers.reports import Outbox, report_on, run_and_status

__all__ = ["Scheduler"]

_RUNNING = "running"

_log = logging.getLogger(__name__)


class Scheduler:
    """Train and eval programs run at most `concurrency` at once, in the order in which their orders came.

    A run that waits for S3 is not counted meanwhile. An inference program (stage Deploy) stays until it ends by itself,
    is cancelled, or the next Deploy order of its job replaces it; it is not counted. Two runs of one worker name never
    run at once. Every method raises StorageError when the journal cannot be written, and may then be called again.
    """

    def __init__(self, journal: Journal, *, concurrency: int, execution: Callable[[Run], Execution]) -> None:
        self.outbox = Outbox()
        self._journal = journal
        self._concurrency = concurrency
        self._execution = execution
        self._waiting: list[Run] = []
        self._active: dict[str, Execution] = {}
        self._stopping = False

    def recover(self) -> None:
        """Go on after a restart: interrupted runs begin again under their old names, unconfirmed reports are sent."""
        for run in self._journal.runs:
            if run.order is None:
                continue
            if run.outcome is not None:
                self._report_outcome(run, run.outcome)
            elif run.cancelled:
                self._retire(run, "cancelled")
            else:
                self._enqueue(run, run.order)
        self._start_next()

    def accept(self, worker: str, order: WorkOrder, *, refusal: str | None = None) -> None:
        """Take an order; one whose id is known has no effect. With `refusal` it fails at once, for that reason."""
        run = self._journal.accept(worker, order, refusal)
        if run is None:
            _log.debug("order %s for worker %s is known", order.id, worker)
            return
        _log.info(
            "order %s: worker %s, %s round %d of %s/%s",
            order.id,
            worker,
            order.stage,
            order.round,
            order.namespace,
            order.job,
        )
        if run.cancelled:
            self._retire(run, "cancelled")
        else:
            self._enqueue(run, order)
            self._start_next()

    def cancel(self, worker: str, order_id: str) -> None:
        """Stop an order, or never begin it; what has ended stays as it is."""
        run = self._journal.cancel(worker, order_id)
        if run.name in self._active:
            _log.info("order %s is cancelled", order_id)
            self._active[run.name].stop("cancelled")
        elif run in self._waiting:
            self._waiting.remove(run)
            self._retire(run, "cancelled")

    def started(self, run: Run, process: ProcessIdentity) -> None:
        """A program began."""
        self._journal.record_process(run, process)
        if _RUNNING not in run.confirmed:
            self.outbox.add(report_on(run, _RUNNING))

    def finished(self, run: Run, outcome: Outcome | None) -> None:
        """A program ended, or was never begun; None if it runs again with the next agent."""
        if outcome is not None:
            self._journal.record_outcome(run, outcome)
            _log.info("worker %s %s%s", run.worker, outcome.status, _reason(outcome))
            if outcome.status == "replaced":
                self.outbox.drop(run)
            else:
                self.outbox.add(report_on(run, outcome.status))
        self._active.pop(run.name, None)
        self._forget()
        self._start_next()

    def turn_over(self) -> None:
        """A program ended, though its run still has to upload: another program may begin."""
        self._start_next()

    def confirmed(self, report_id: str, error: str | None) -> None:
        """The local controller has a report on its disk, or refused it under the code `error`."""
        name, status = run_and_status(report_id)
        run = self._journal.find(name)
        # A report that is not in the outbox may have been sent before a restart.
        if run is None or status in run.confirmed or status not in (_RUNNING, run.outcome and run.outcome.status):
            return
        self._journal.record_confirmation(run, status, error)
        self.outbox.confirm(run, status)
        if error is not None:
            _log.warning("the local controller refused report %s: %s", report_id, error)

    def stop(self, timeout: float) -> None:
        """End all programs without an outcome; they run again with the next agent."""
        self._stopping = True
        active = list(self._active.values())
        for execution in active:
            execution.stop("agent stops")
        for execution in active:
            if not execution.join(timeout):
                _log.error("worker %s does not end", execution.run.worker)

    def _report_outcome(self, run: Run, outcome: Outcome) -> None:
        if outcome.status == "replaced" or outcome.status in run.confirmed:
            return
        if outcome.ran and _RUNNING not in run.confirmed:
            self.outbox.add(report_on(run, _RUNNING))
        self.outbox.add(report_on(run, outcome.status))

    def _enqueue(self, run: Run, order: WorkOrder) -> None:
        if order.stage == "Deploy":
            for execution in list(self._active.values()):
                if _deploys_job_of(execution.run, order):
                    execution.stop("replaced")
            for other in [other for other in self._waiting if _deploys_job_of(other, order)]:
                self._waiting.remove(other)
                self._retire(other, "replaced")
        self._waiting.append(run)

    def _start_next(self) -> None:
        for run in list(self._waiting):
            if not self._stopping and self._may_start(run):
                self._waiting.remove(run)
                self._begin(run)

    def _may_start(self, run: Run) -> bool:
        order, active = run.order, [execution.run for execution in self._active.values()]
        at_work = [execution.run.order for execution in self._active.values() if execution.takes_turn]
        if order is None or any(other.worker == run.worker for other in active):
            return False
        if order.stage == "Deploy":
            return not any(_deploys_job_of(other, order) for other in active)
        return sum(other is not None and other.stage != "Deploy" for other in at_work) < self._concurrency

    def _begin(self, run: Run) -> None:
        execution = self._active[run.name] = self._execution(run)
        execution.start()

    def _retire(self, run: Run, reason: StopReason) -> None:
        """End what may be left of a run that is not to go on; it takes no turn, for nothing is started."""
        execution = self._active[run.name] = self._execution(run)
        execution.stop(reason)
        execution.start()

    def _forget(self) -> None:
        self._journal.forget(
            run
            for run in self._journal.runs
            if run.name not in self._active
            and (run.order is None or (run.outcome and (run.outcome.status in (*run.confirmed, "replaced"))))
        )


def _deploys_job_of(run: Run, order: WorkOrder) -> bool:
    other = run.order
    return other is not None and (other.stage, other.namespace, other.job) == ("Deploy", order.namespace, order.job)


def _reason(outcome: Outcome) -> str:
    return failure_words(outcome.owner_info) if outcome.status == "failed" else ""
