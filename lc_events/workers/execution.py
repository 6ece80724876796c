"""One run from its start to its outcome, on a thread of its own."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from lc_events.errors import LcError, RefusedError
from lc_events.messages.worker import WorkOrder
from lc_events.storage import LocalStorage, S3Clients
from lc_events.workers.environment import ProgramEnvironment, expand, order_urls, program_environment
from lc_events.workers.executables import resolve_executable
from lc_events.workers.journal import Run
from lc_events.workers.objects import ObjectFolder
from lc_events.workers.outcome import Outcome, describe_exit, read_result
from lc_events.workers.output import CapturedOutput
from lc_events.workers.processes import ProcessIdentity, end, identify
from lc_events.workers.settings import AgentSettings
from lc_events.workers.transfers import StoppedError, Transfers

__all__ = ["Execution", "StopReason"]

StopReason = Literal["cancelled", "replaced", "agent stops"]
"""Why a program is ended; after `agent stops` there is no outcome, for it runs again with the next agent."""

_READER_SECONDS = 5.0
_TURN_SECONDS = 0.2

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Program:
    """An order made ready for this node."""

    argv: list[str]
    environment: ProgramEnvironment
    result_file: Path


class Execution:
    """Ends what an earlier agent left of this run, starts the program, waits for it, judges what it wrote.

    What the program needs from S3 is fetched before it runs, what it wrote is uploaded after. Meanwhile the run takes
    no turn, so that a slow server holds up no other run. `turns` bounds the programs that run at once.

    `on_started`, `on_turn_over` and `on_finished` are called on the thread of the execution, `on_finished` exactly
    once, with None when the agent stops.
    """

    def __init__(
        self,
        run: Run,
        settings: AgentSettings,
        *,
        on_started: Callable[[Run, ProcessIdentity], None],
        on_finished: Callable[[Run, Outcome | None], None],
        on_turn_over: Callable[[], None] = lambda: None,
        turns: threading.Semaphore | None = None,
        clients: S3Clients | None = None,
    ) -> None:
        self.run = run
        self._settings = settings
        self._on_started = on_started
        self._on_finished = on_finished
        self._on_turn_over = on_turn_over
        self._turns = turns or threading.Semaphore()
        self._stop_wanted = threading.Event()
        clients = clients or S3Clients(ca_file=settings.s3_ca_file, timeout=settings.s3_timeout_seconds)
        self._objects = ObjectFolder.of_environment(run.work_folder / "objects", settings.environ, clients)
        urls = {} if run.order is None else order_urls(run.order)
        self._transfers = Transfers(urls, self._objects, self._stop_wanted)
        self.takes_turn = not self._transfers.has_any
        """Whether the run counts as one of those that may run at once."""
        self._lock = threading.Lock()
        self._reason: StopReason | None = None
        self._leader: ProcessIdentity | None = None
        self._ran = run.process is not None
        self._thread = threading.Thread(target=self._execute, name=run.name, daemon=True)

    def start(self) -> None:
        """Begin, and return at once."""
        self._thread.start()

    def stop(self, reason: StopReason) -> None:
        """SIGTERM to all of the run, SIGKILL after the grace, without waiting; the first reason counts."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            leader = self._leader
        self._stop_wanted.set()
        if leader:
            threading.Thread(target=self._end, args=(leader,), name=f"end-{self.run.name}", daemon=True).start()

    def join(self, timeout: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _execute(self) -> None:
        try:
            outcome = self._outcome()
        except (LcError, OSError, ValueError) as error:
            outcome = self._failed(str(error))
        except Exception as error:  # noqa: BLE001 (the thread must say how it ended)
            _log.exception("run %s", self.run.name)
            outcome = self._failed(f"the agent failed: {error!r}")
        shutil.rmtree(self._objects.folder, ignore_errors=True)
        self._on_finished(self.run, outcome)

    def _outcome(self) -> Outcome | None:
        order = self.run.order
        if order is None or self.run.refusal:
            return self._failed(self.run.refusal or "the run has no order")
        self._end(self.run.process)
        if reason := self._stop_reason():
            return self._stopped(reason)
        program = self._prepare(order)
        output = CapturedOutput(self.run.output_file)
        outcome = None
        with suppress(StoppedError):
            outcome = self._carried_out(order, program, output)
        if reason := self._stop_reason():
            return self._stopped(reason, output, program)
        return outcome

    def _carried_out(self, order: WorkOrder, program: _Program, output: CapturedOutput) -> Outcome:
        """Fetch, run, judge, upload; StoppedError if the run is to end meanwhile."""
        self._transfers.bring_in()
        with self._turn(order):
            returncode = self._run_to_end(program, output)
        if self._stop_reason():
            raise StoppedError
        if returncode:
            return self._failed(describe_exit(returncode), output, program)
        try:
            result = read_result(program.result_file, self._settings.root, self._objects.url)
        except RefusedError as error:
            return self._failed(f"the program wrote a bad result file: {error}", output, program)
        if result is None and order.stage != "Deploy":
            return self._failed("the program exited with 0 but wrote no result file ($LC_RESULT_FILE)", output, program)
        self._transfers.carry_out()
        if result is None:
            return Outcome("completed", ran=True)
        return Outcome("completed", ran=True, results=result.models, owner_info=result.owner_info)

    @contextmanager
    def _turn(self, order: WorkOrder) -> Iterator[None]:
        """Be one of the programs that run at once; an inference program is not counted."""
        if order.stage == "Deploy":
            yield
            return
        while not self._turns.acquire(timeout=_TURN_SECONDS):
            if self._stop_wanted.is_set():
                raise StoppedError
        self.takes_turn = True
        try:
            yield
        finally:
            self._turns.release()
            if self._transfers.has_any:
                self.takes_turn = False
                self._on_turn_over()

    def _prepare(self, order: WorkOrder) -> _Program:
        work = self.run.work_folder
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        name = PurePosixPath(order.result_file)
        if name.is_absolute() or ".." in name.parts or not name.name:
            raise RefusedError(f"result_file {order.result_file[:100]!r} is not a path below the working directory")
        result_file = work / name
        result_file.parent.mkdir(parents=True, exist_ok=True)
        environment = program_environment(
            order,
            self.run.worker,
            self._settings,
            run_folder=self.run.folder,
            result_file=result_file,
            objects=self._objects,
        )
        variables = environment.variables
        words = [expand(word, variables) for word in (*order.command, *order.args)]
        executable = resolve_executable(
            words[0], self._settings.allow, self._settings.environ, written=order.command[0]
        )
        output_url = variables.get("OUTPUT_URL", "")
        if output_url.startswith("/"):  # as Sedna's mounts do
            LocalStorage(Path("/")).make_folder(output_url)
        return _Program([executable, *words[1:]], environment, result_file)

    def _run_to_end(self, program: _Program, output: CapturedOutput) -> int:
        """The program's return code; 0 if the run was stopped before the program began."""
        with self._lock:
            if self._reason:
                return 0
            process = subprocess.Popen(  # noqa: S603 (WORKER_ALLOW says what may be started)
                program.argv,
                cwd=self.run.work_folder,
                env=dict(program.environment.variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._leader = identify(process.pid)
            self._ran = True
        if self._leader:
            self._on_started(self.run, self._leader)
        return self._wait(process, output)

    def _wait(self, process: subprocess.Popen[bytes], output: CapturedOutput) -> int:
        """Wait, and end what the program left behind, as a container ends with its first process."""
        pipe: IO[bytes] | None = process.stdout
        if pipe is None:
            raise RefusedError("the program's output is not connected")
        reader = threading.Thread(target=output.read, args=(pipe,), name=f"read-{self.run.name}", daemon=True)
        reader.start()
        # Not reaped yet, so its number cannot belong to another session while we look for the rest of this one.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        end(self.run.folder, self._leader, grace_seconds=0)
        returncode = process.wait()
        reader.join(_READER_SECONDS)
        if not reader.is_alive():
            pipe.close()
        return returncode

    def _end(self, leader: ProcessIdentity | None) -> None:
        end(self.run.folder, leader, grace_seconds=self._settings.grace_seconds)

    def _stop_reason(self) -> StopReason | None:
        with self._lock:
            return self._reason

    def _stopped(
        self, reason: StopReason, output: CapturedOutput | None = None, program: _Program | None = None
    ) -> Outcome | None:
        match reason:
            case "cancelled":
                return self._failed("cancelled", output, program)
            case "replaced":
                return Outcome("replaced", ran=self._ran)
            case "agent stops":
                return None

    def _failed(self, error: str, output: CapturedOutput | None = None, program: _Program | None = None) -> Outcome:
        owner_info = {"error": error}
        if output and program:
            owner_info["output"] = output.last_lines(program.environment.secrets)
            if self.run.output_file.exists():
                owner_info["output_file"] = str(self.run.output_file.absolute())
        return Outcome("failed", ran=self._ran, owner_info={**owner_info})
