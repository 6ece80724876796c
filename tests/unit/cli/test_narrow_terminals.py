from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest
from support.rounds import two_rounds
from support.stores import stored


@pytest.fixture
def on_terminal(tmp_path):
    """Run a command on a terminal of so many columns, with a store of two rounds of job1; the lines that it shows."""
    stored(tmp_path / "events.db", two_rounds().history().events)
    environment = {**os.environ, "LC_STATE_DIR": str(tmp_path), "LC_TIMEZONE": "UTC"}
    environment.pop("COLUMNS", None)

    def run(columns, *args):
        screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([sys.executable, "-m", "lc_events", *args], stdout=terminal, env=environment) as process:
            os.close(terminal)
            shown = b""
            try:
                while piece := os.read(screen, 1 << 16):
                    shown += piece
            except OSError:  # Linux's word for the end of a terminal
                os.close(screen)
        assert process.returncode == 0
        return shown.decode().splitlines()

    return run


def test_a_wide_terminal_shows_each_job_on_a_line(on_terminal):
    titles, line = on_terminal(120, "jobs")
    assert titles.split()[-1] == "VERDICT"
    assert line.endswith("2024-01-01 00:39:00  num_of_samples 2 is not > 3")


def test_where_it_does_not_fit_the_last_column_stands_below(on_terminal):
    lines = on_terminal(80, "jobs")
    assert [line.split()[-1] for line in lines[::2]] == ["UPDATED", "00:39:00"]
    assert lines[1::2] == ["    VERDICT", "    num_of_samples 2 is not > 3"]


def test_where_that_does_not_fit_either_each_column_has_a_line(on_terminal):
    assert on_terminal(30, "jobs") == [
        "JOB      default/job1",
        "NODE     edge1",
        "STAGE    Train/Waiting",
        "ROUND    2",
        "VERSION  41",
        "UPDATED  2024-01-01 00:39:00",
        "VERDICT  num_of_samples 2 is",
        "         not > 3",
    ]


@pytest.mark.parametrize("columns", [60, 80])
def test_what_a_history_says_stands_below_its_head(on_terminal, columns):
    assert on_terminal(columns, "history", "job1", "--from", "6", "--to", "6") == [
        "6  2024-01-01 00:05:00.000  TrainingTriggered",
        "    round 1 trains on 7 samples: num_of_samples 7 is > 3",
    ]
