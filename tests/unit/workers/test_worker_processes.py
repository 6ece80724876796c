from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lc_events.workers.processes import end, identify, members

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
ESCAPED = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)"


@contextmanager
def started(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"LC_RUN_FOLDER": str(folder)},
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        end(folder, None, grace_seconds=0)
        process.kill()
        process.communicate()


def test_a_run_is_found_by_its_mark_and_ended(tmp_path: Path):
    with started(tmp_path / "run", SLEEP) as process:
        assert members(tmp_path / "run", None) == [process.pid]
        assert members(tmp_path / "ru", None) == []
        end(tmp_path / "run", None, grace_seconds=5)
        assert process.wait(10) == -signal.SIGTERM


def test_a_run_that_hides_its_environment_is_found_by_its_leader(tmp_path: Path):
    with started(tmp_path / "other", SLEEP) as process:
        leader = identify(process.pid)
        assert leader is not None
        end(tmp_path / "run", leader, grace_seconds=5)
        assert process.wait(10) == -signal.SIGTERM


def test_a_process_that_got_the_number_of_another_is_left_alone(tmp_path: Path):
    with started(tmp_path / "other", SLEEP) as process:
        leader = identify(process.pid)
        assert leader is not None
        assert members(tmp_path / "run", replace(leader, started=leader.started - 1)) == []
        assert members(tmp_path / "run", replace(leader, boot="an earlier one")) == []


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path):
    with started(tmp_path / "run", STUBBORN) as process:
        end(tmp_path / "run", None, grace_seconds=0.2)
        assert process.wait(10) == -signal.SIGKILL


def test_a_child_that_left_the_session_and_lost_its_parent_is_ended_too(tmp_path: Path):
    with started(tmp_path / "run", ESCAPED) as process:
        assert process.wait(10) == 0
        [child] = members(tmp_path / "run", None)
        end(tmp_path / "run", None, grace_seconds=5)
        assert members(tmp_path / "run", None) == []
        assert not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes()


def test_there_is_no_identity_of_nobody():
    assert identify(2**22 + 1) is None
