"""The agent's memory: one folder for each run, written before anything is acknowledged or reported."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lc_events.errors import RefusedError
from lc_events.messages.json import UINT64_MAX, JsonObject, dumps, loads_object
from lc_events.messages.worker import WorkOrder
from lc_events.storage import LocalStorage
from lc_events.workers.outcome import Outcome
from lc_events.workers.processes import ProcessIdentity

__all__ = ["Journal", "Run"]

_KEPT_RUNS = 1000
_KEPT_OUTPUTS = 20

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Run:
    """One order and all that came of it; `order` is None if it was cancelled before it arrived."""

    folder: Path
    worker: str
    sequence: int
    order: WorkOrder | None = None
    refusal: str | None = None
    """Why the order is not carried out at all."""
    cancelled: bool = False
    process: ProcessIdentity | None = None
    outcome: Outcome | None = None
    confirmed: dict[str, str | None] = field(default_factory=dict)
    """Status of each confirmed report, and the code under which it was refused."""
    trimmed: bool = False
    """Whether the program's files were removed."""

    @property
    def name(self) -> str:
        """Worker and hashed order id: unique on the node, and safe in a path and in a message id."""
        return self.folder.name

    @property
    def work_folder(self) -> Path:
        """The program's working directory."""
        return self.folder / "work"

    @property
    def output_file(self) -> Path:
        """What the program printed."""
        return self.folder / "output.log"


class Journal:
    """All runs of a node below `folder`; every method that changes one has it on disk when it returns.

    Raises StorageError when the disk is full or broken; the run is unchanged then, and the call may be repeated.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "runs"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._storage = LocalStorage(self._folder)
        self._runs = {run.name: run for run in self._load()}

    @property
    def runs(self) -> list[Run]:
        """All runs, in the order in which they were accepted."""
        return sorted(self._runs.values(), key=lambda run: run.sequence)

    def find(self, name: str) -> Run | None:
        """The run of that name."""
        return self._runs.get(name)

    def accept(self, worker: str, order: WorkOrder, refusal: str | None) -> Run | None:
        """Keep an order, and the reason if it is refused; None if its id is known for this worker."""
        known = self._runs.get(self._name(worker, order.id))
        if known and known.order:
            return None
        run = known or self._new(worker, order.id)
        head: JsonObject = {"worker": worker, "sequence": run.sequence}
        self._write(run, "order", {**head, "order": order.model_dump(mode="json"), "refusal": refusal})
        run.order, run.refusal = order, refusal
        self._runs[run.name] = run
        return run

    def cancel(self, worker: str, order_id: str) -> Run:
        """Keep the wish to stop, also for an order that has not arrived."""
        run = self._runs.get(self._name(worker, order_id)) or self._new(worker, order_id)
        self._write(run, "cancel", {"worker": worker, "sequence": run.sequence})
        run.cancelled = True
        self._runs[run.name] = run
        return run

    def record_process(self, run: Run, process: ProcessIdentity) -> None:
        """Keep which process runs, so that an agent that was killed finds it again."""
        self._write(run, "process", asdict(process))
        run.process = process

    def record_outcome(self, run: Run, outcome: Outcome) -> None:
        """Keep how a run ended; from here on it is never run again."""
        self._write(run, "outcome", asdict(outcome))
        run.outcome = outcome

    def record_confirmation(self, run: Run, status: str, error: str | None) -> None:
        """Keep that the local controller has, or refused, a report."""
        confirmed = {**run.confirmed, status: error}
        self._write(run, "confirmed", confirmed)
        run.confirmed = confirmed

    def forget(self, finished: Iterable[Run]) -> None:
        """Keep the newest 1,000 of these runs, by which repeated orders are known, and the files of the newest 20."""
        newest_first = sorted(finished, key=lambda run: -run.sequence)
        for run in newest_first[_KEPT_OUTPUTS:_KEPT_RUNS]:
            if not run.trimmed:
                shutil.rmtree(run.work_folder, ignore_errors=True)
                for output in run.folder.glob(f"{run.output_file.name}*"):
                    with contextlib.suppress(OSError):
                        output.unlink()
                run.trimmed = True
        for run in newest_first[_KEPT_RUNS:]:
            shutil.rmtree(run.folder, ignore_errors=True)
            del self._runs[run.name]

    def _name(self, worker: str, order_id: str) -> str:
        return f"{worker}.{hashlib.sha256(order_id.encode()).hexdigest()[:16]}"

    def _new(self, worker: str, order_id: str) -> Run:
        sequence = max((run.sequence for run in self._runs.values()), default=0) + 1
        return Run(self._folder / self._name(worker, order_id), worker, sequence)

    def _write(self, run: Run, name: str, value: JsonObject) -> None:
        self._storage.write(f"/{run.name}/{name}.json", [dumps(value)])

    def _load(self) -> Iterable[Run]:
        for folder in self._folder.iterdir():
            try:
                run = _read(folder)
            except (RefusedError, ValidationError, KeyError, TypeError, OSError) as error:
                _log.error("the run in %s is not readable and is left alone: %s", folder, error)
                continue
            if run:
                yield run


def _read(folder: Path) -> Run | None:
    """The run in a folder; None if the agent died before it wrote the first file."""
    order, cancel = _json(folder / "order.json"), _json(folder / "cancel.json")
    first = order or cancel
    if first is None:
        return None
    process, outcome, confirmed = (_json(folder / f"{name}.json") for name in ("process", "outcome", "confirmed"))
    return Run(
        folder,
        worker=first["worker"],
        sequence=first["sequence"],
        order=WorkOrder.model_validate(order["order"]) if order else None,
        refusal=order["refusal"] if order else None,
        cancelled=cancel is not None,
        process=ProcessIdentity(**process) if process else None,
        outcome=Outcome(**outcome) if outcome else None,
        confirmed=confirmed or {},
    )


def _json(path: Path) -> dict[str, Any] | None:
    """What the journal wrote, or None."""
    try:
        return dict(loads_object(path.read_bytes(), max_integer=UINT64_MAX))
    except FileNotFoundError:
        return None
