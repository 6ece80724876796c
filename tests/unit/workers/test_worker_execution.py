from __future__ import annotations

import queue
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lc_events.messages.worker import WorkOrder
from lc_events.workers.execution import Execution, StopReason
from lc_events.workers.journal import Journal, Run
from lc_events.workers.outcome import Outcome
from lc_events.workers.processes import ProcessIdentity, members
from lc_events.workers.settings import AgentSettings

REPORTS = "from lc_events.workers import report\nimport os\n"
HANGS = "import time; print('up', flush=True); time.sleep(60)"


class Trial:
    """One execution and what it says."""

    def __init__(self, settings: AgentSettings, order: WorkOrder) -> None:
        self.settings = settings
        run = Journal(settings.state_dir).accept("w1", order, None)
        assert run
        self.run = run
        self.started: queue.SimpleQueue[ProcessIdentity] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self.execution = Execution(
            run,
            settings,
            on_started=lambda _, process: self.started.put(process),
            on_finished=lambda _, outcome: self._finished.put(outcome),
        )

    def outcome(self) -> Outcome | None:
        outcome = self._finished.get(timeout=20)
        assert self.execution.join(10)
        assert members(self.run.folder, None) == []
        return outcome

    def ends(self) -> Outcome:
        self.execution.start()
        outcome = self.outcome()
        assert outcome
        return outcome

    def fails(self) -> tuple[str, str]:
        outcome = self.ends()
        assert outcome.status == "failed"
        assert not outcome.results
        assert outcome.owner_info
        return str(outcome.owner_info["error"]), str(outcome.owner_info.get("output", ""))


@pytest.fixture
def trial(settings: AgentSettings, order_of: Callable[..., WorkOrder]) -> Callable[..., Trial]:
    def make(program: str, **changes: object) -> Trial:
        return Trial(settings, order_of(program, **changes))

    return make


def test_a_program_that_succeeds_is_completed_with_what_it_wrote(trial: Callable[..., Trial]):
    program = REPORTS + "report([os.environ['OUTPUT_URL'] + '/index.pkl'], metrics={'acc': [0.5]}, owner_info={'n': 1})"
    outcome = trial(program, env={"OUTPUT_URL": "/out/train/1"}).ends()
    assert outcome == Outcome(
        "completed",
        ran=True,
        results=[{"format": "pkl", "url": "/out/train/1/index.pkl", "metrics": {"acc": [0.5]}}],
        owner_info={"n": 1},
    )


def test_the_output_folder_is_there_and_the_working_directory_is_the_runs_own(
    trial: Callable[..., Trial], settings: AgentSettings
):
    program = REPORTS + "assert os.path.isdir(os.environ['OUTPUT_URL']); open('scratch', 'w'); report()"
    run = trial(program, env={"OUTPUT_URL": "/out/train/1"})
    assert run.ends().status == "completed"
    assert (settings.root / "out/train/1").is_dir()
    assert (run.run.work_folder / "scratch").exists()


def test_arguments_refer_to_variables(trial: Callable[..., Trial]):
    program = (
        "import sys, os; assert sys.argv[1] == os.environ['MODEL_URLS'], sys.argv; open(sys.argv[2], 'w').write('[]')"
    )
    args = ["-c", program, "$(MODEL_URLS)", "$(LC_RESULT_FILE)"]
    assert trial("", args=args, env={"MODEL_URLS": "/m.pkl"}).ends().status == "completed"


def test_a_program_that_fails_says_its_last_lines(trial: Callable[..., Trial]):
    error, output = trial("print('loading'); raise SystemExit('no data in train file')").fails()
    assert error == "the program exited with 1"
    assert output == "loading\nno data in train file"


def test_a_failure_names_the_file_that_holds_what_the_program_printed(trial: Callable[..., Trial]):
    run = trial("print('a line'); raise SystemExit(2)")
    owner_info = run.ends().owner_info or {}
    assert owner_info["output_file"] == str(run.run.output_file.absolute())
    assert run.run.output_file.read_text() == "a line\n"
    assert "output_file" not in (trial("raise SystemExit(2)", id="silent").ends().owner_info or {})


def test_a_program_that_prints_megabytes_is_neither_held_up_nor_kept_whole(trial: Callable[..., Trial]):
    run = trial("for n in range(300_000): print('line', n)\nraise SystemExit(3)")
    error, output = run.fails()
    assert error == "the program exited with 3"
    assert output.splitlines()[-1] == "line 299999"
    assert len(output.splitlines()) == 20
    assert sum(path.stat().st_size for path in run.run.folder.glob("output.log*")) <= 2 * 1_048_576


def test_a_program_killed_by_the_system_is_named_by_the_signal(trial: Callable[..., Trial]):
    error, _ = trial("import os; os.kill(os.getpid(), 9)").fails()
    assert error == "the program was ended by SIGKILL"


def test_a_bad_result_file_is_a_failure_with_the_reason(trial: Callable[..., Trial]):
    error, output = trial("import os; open(os.environ['LC_RESULT_FILE'], 'w').write('{'); print('done')").fails()
    assert error.startswith("the program wrote a bad result file: not JSON")
    assert output == "done"


def test_a_training_without_a_result_file_has_failed(trial: Callable[..., Trial]):
    error, _ = trial("").fails()
    assert "wrote no result file" in error


def test_a_result_of_an_earlier_attempt_does_not_count(trial: Callable[..., Trial]):
    run = trial("")
    run.run.work_folder.mkdir()
    (run.run.work_folder / "result.json").write_text("[]")
    assert "wrote no result file" in run.fails()[0]


def test_an_inference_program_may_end_without_a_result(trial: Callable[..., Trial]):
    assert trial("", stage="Deploy").ends() == Outcome("completed", ran=True)


@pytest.mark.parametrize("command", [["sh", "-c", "true"], ["/usr/bin/env", "python"], ["../python"]])
def test_an_executable_that_is_not_allowed_is_not_started(trial: Callable[..., Trial], command: list[str]):
    run = trial("", command=command)
    error, _ = run.fails()
    assert "WORKER_ALLOW" in error
    assert run.started.empty()


@pytest.mark.parametrize("name", ["/etc/result.json", "../result.json", "a/../../b", "", "."])
def test_a_result_file_elsewhere_is_refused(trial: Callable[..., Trial], name: str):
    assert "not a path below the working directory" in trial("", result_file=name).fails()[0]


def test_arguments_that_the_system_refuses_are_a_failure(trial: Callable[..., Trial]):
    assert "null byte" in trial("", args=["a\0b"]).fails()[0]
    assert "too long" in trial("", id="o-2", args=["x" * 200_000]).fails()[0]


def test_a_secret_is_handed_over_and_not_repeated(settings: AgentSettings, order_of: Callable[..., WorkOrder]):
    own = replace(settings, environ={**settings.environ, "API_TOKEN": "t0psecret"})
    order = order_of("import os; raise SystemExit('bad token ' + os.environ['API_TOKEN'])", secret_env=["API_TOKEN"])
    assert Trial(own, order).fails()[1] == "bad token ***"


@pytest.mark.parametrize(
    ("reason", "expected"), [("cancelled", "failed"), ("replaced", "replaced"), ("agent stops", None)]
)
def test_a_program_that_hangs_can_be_stopped(trial: Callable[..., Trial], reason: StopReason, expected: str | None):
    run = trial(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {HANGS}")
    run.execution.start()
    assert run.started.get(timeout=20)
    run.execution.stop(reason)
    outcome = run.outcome()
    assert (outcome.status if outcome else None) == expected
    if reason == "cancelled":
        assert outcome
        assert outcome.owner_info
        assert outcome.owner_info["error"] == "cancelled"


def test_a_program_stopped_before_it_began_is_not_started(trial: Callable[..., Trial]):
    run = trial(HANGS)
    run.execution.stop("cancelled")
    run.execution.start()
    outcome = run.outcome()
    assert outcome == Outcome("failed", ran=False, owner_info={"error": "cancelled"})
    assert run.started.empty()


def test_what_a_program_leaves_running_ends_with_it(trial: Callable[..., Trial]):
    child = f"subprocess.Popen([sys.executable, '-c', {HANGS!r}], start_new_session=session)"
    program = f"{REPORTS}import subprocess, sys\nfor session in (False, True): {child}\nreport()"
    assert trial(program).ends().status == "completed"


def test_python_is_the_agents_own(trial: Callable[..., Trial]):
    program = REPORTS + "import sys; report(owner_info={'python': sys.executable})"
    assert trial(program, command=["python3"]).ends().owner_info == {"python": sys.executable}


def test_a_refused_order_fails_with_the_reason(trial: Callable[..., Trial]):
    run = trial("")
    run.run.refusal = "args: not a list"
    assert run.fails()[0] == "args: not a list"


def test_a_program_whose_agent_was_killed_is_ended_before_it_runs_again(
    settings: AgentSettings, order_of: Callable[..., WorkOrder]
):
    order = order_of(f"{REPORTS}report()\n{HANGS}", stage="Deploy")
    first = Trial(settings, order)
    first.execution.start()
    leader = first.started.get(timeout=20)
    again = Run(first.run.folder, "w1", 1, order=order, process=leader)
    second = Execution(again, settings, on_started=lambda *_: None, on_finished=lambda *_: None)
    second.stop("agent stops")
    second._outcome()
    outcome = first.outcome()
    assert outcome
    assert outcome.owner_info
    assert outcome.owner_info["error"] == "the program was ended by SIGTERM"


def test_paths_of_the_agent_do_not_depend_on_where_it_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    settings = AgentSettings(node="edge1", state_dir=Path("state"), root=Path("a/../root"), programs=Path())
    assert (settings.state_dir, settings.root, settings.programs) == (tmp_path / "state", tmp_path / "root", tmp_path)
