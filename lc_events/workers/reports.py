"""What the agent says to the local controller, again and again until it hears that it is on disk there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lc_events.domain.pauses import pause_after
from lc_events.messages.json import JsonObject, dumps
from lc_events.messages.names import JOB_KIND
from lc_events.workers.journal import Run

__all__ = ["Outbox", "Report", "report_id_of", "report_on", "run_and_status"]


@dataclass(slots=True, eq=False)
class Report:
    """One worker message, sent `attempts` times on this connection; it is `due` at a time of the monotonic clock."""

    run: Run
    status: str
    id: str
    payload: bytes
    due: float = 0.0
    attempts: int = 0


def report_id_of(run: Run, status: str) -> str:
    """The id of a report; `run_and_status` reads it."""
    return f"{run.name}.{status}"


def run_and_status(report_id: str) -> tuple[str, str]:
    """Run name and status of a report's id; an id that is not ours gives two words that mean nothing."""
    name, _, status = report_id.rpartition(".")
    return name, status


def report_on(run: Run, status: str) -> Report:
    """The report of a run: `running`, or its outcome. It is the same each time, id included.

    `ownerInfo` always names `order` and `round`: a status alone does not tell the global manager whose it is.
    """
    order, outcome = run.order, run.outcome
    if order is None:
        raise ValueError(f"run {run.name} has no order to report on")
    final = outcome is not None and status == outcome.status
    owner_info: JsonObject = {
        **((outcome.owner_info or {}) if outcome and final else {}),
        "order": order.id,
        "round": order.round,
    }
    report_id = report_id_of(run, status)
    message: JsonObject = {
        "id": report_id,
        "name": run.worker,
        "namespace": order.namespace,
        "ownerName": order.job,
        "ownerKind": JOB_KIND,
        "ownerInfo": owner_info,
        "kind": order.stage.lower(),
        "status": status,
        "results": list(outcome.results) if outcome and final else [],
    }
    return Report(run, status, report_id, dumps(message))


class Outbox:
    """Unconfirmed reports: of each worker only the oldest is sent, so that none overtakes another."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Report]] = {}

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def add(self, report: Report) -> None:
        """Send this after the earlier reports of the same worker."""
        self._queues.setdefault(report.run.worker, deque()).append(report)

    def confirm(self, run: Run, status: str) -> None:
        """Take out that report of a run, and those that the run made before it: they are out of date."""
        said = [report.status for report in self._queues.get(run.worker, ()) if report.run is run]
        if status in said:
            self._take_out(run, said[: said.index(status) + 1])

    def drop(self, run: Run) -> None:
        """Take out all reports of a run."""
        self._take_out(run, [report.status for report in self._queues.get(run.worker, ()) if report.run is run])

    def _take_out(self, run: Run, statuses: list[str]) -> None:
        queue = self._queues.pop(run.worker, deque())
        kept = deque(report for report in queue if report.run is not run or report.status not in statuses)
        if kept:
            self._queues[run.worker] = kept

    def due(self, now: float) -> list[Report]:
        """The reports to send now."""
        return [queue[0] for queue in self._queues.values() if queue[0].due <= now]

    def sent(self, report: Report, now: float) -> None:
        """It was sent; it is due again after a pause, which doubles from 1 s up to 60 s."""
        report.attempts += 1
        report.due = now + pause_after(report.attempts)

    def next_due(self) -> float | None:
        """When the next report is due; None if all is confirmed."""
        return min((queue[0].due for queue in self._queues.values()), default=None)

    def connected(self) -> None:
        """Send everything again now: nobody knows what was lost with the old connection."""
        for queue in self._queues.values():
            queue[0].due, queue[0].attempts = 0.0, 0
