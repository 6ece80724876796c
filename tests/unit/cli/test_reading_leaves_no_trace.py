"""Reading commands, each a process, beside a writer and after its end: `events.db` and `-wal` stay as they are."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
from support.rounds import two_rounds

WRITER = """
import sys
from pathlib import Path
from support.rounds import two_rounds
from support.stores import writing

journal = writing(Path(sys.argv[1]))
for event in two_rounds().history().events:
    journal.record([event])
print("written", flush=True)
for line in sys.stdin:
    pass
"""
NEWEST = len(two_rounds().history().events)

COMMANDS = [
    ("jobs",),
    ("show", "job1"),
    ("history", "job1"),
    ("history", "job1", "-o", "json"),
    ("at", "job1", "--version", "5"),
    ("at", "job1", "--time", "now"),
    ("diff", "job1", "--from", "1", "--to", "9"),
    ("why", "job1"),
    ("what-if", "job1", "--threshold", "1"),
    ("verify",),
    ("verify", "job1", "-o", "json"),
    ("export", "-o", "-"),
    ("provenance", "job1", "--round", "1"),
]


@pytest.fixture
def writer(tmp_path):
    """A process that has written a store and still holds it open."""
    path = tmp_path / "events.db"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        assert process.stdout.readline() == "written\n"
        yield process
        process.kill()


def run(folder, *args):
    environment = {**os.environ, "LC_STATE_DIR": str(folder), "LC_TIMEZONE": "UTC"}
    command = [sys.executable, "-m", "lc_events", *args]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), args
    return done.stdout


def digests(folder):
    """The files that have to stay, with what is in them; a `-wal` that did not exist may appear, empty."""
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.endswith("-shm")}
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if content}


def test_beside_a_writer(writer, tmp_path):
    before = digests(tmp_path)
    assert before.keys() == {"events.db", "events.db-wal"}

    for command in COMMANDS:
        run(tmp_path, *command)
        assert digests(tmp_path) == before, command
    assert json.loads(run(tmp_path, "show", "job1", "-o", "json"))["version"] == NEWEST


def test_after_a_kill_that_left_the_log_behind(writer, tmp_path):
    writer.send_signal(signal.SIGKILL)
    writer.wait(30)
    before = digests(tmp_path)
    assert "events.db-wal" in before

    for command in COMMANDS:
        run(tmp_path, *command)
        assert digests(tmp_path) == before, command
    assert json.loads(run(tmp_path, "verify", "job1", "-o", "json"))["version"] == NEWEST


def test_after_an_orderly_end(writer, tmp_path):
    writer.stdin.close()
    writer.wait(30)
    before = digests(tmp_path)
    assert before.keys() == {"events.db"}

    for command in COMMANDS:
        run(tmp_path, *command)
        assert digests(tmp_path) == before, command
