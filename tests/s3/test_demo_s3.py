"""`lc-events demo --s3`: the whole job, with nothing but objects."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import eventually

from lc_events.demo.s3_server import S3Server

pytest.importorskip("sklearn")

DEMO = (sys.executable, "-m", "lc_events", "demo", "--s3")


def environment(folder):
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}


def processes_of(folder):
    """Processes that were told of the folder, in their arguments or environment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in told:
                found.append(told.split(b"\0")[:4])
    return found


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("s3_server")
def test_two_rounds_with_everything_in_s3(tmp_path):
    done = subprocess.run(DEMO, env=environment(tmp_path), capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (float(reads) for reads in re.findall(r"\nround \d: the device reads ([\d.]+)%", done.stdout))
    assert first < 60
    assert second > 85
    assert processes_of(tmp_path) == []
    [folder] = tmp_path.glob("lc-events-demo-*")
    assert not any((folder / "root").rglob("*.csv"))
    assert not any((folder / "root").rglob("*.pkl"))
    stored = b"".join(path.read_bytes() for path in folder.glob("*-state/events.db*"))
    logged = "".join(path.read_text() for path in folder.glob("*.log"))
    [secret] = re.findall(r'"secretKey": "(\w+)"', (folder / "s3/server/s3.json").read_text())
    assert secret.encode() not in stored
    assert secret not in logged + done.stdout + done.stderr


@pytest.mark.usefixtures("s3_server")
def test_interrupted_while_the_server_starts_it_leaves_no_process(tmp_path):
    with subprocess.Popen(DEMO, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as demo:
        eventually(lambda: any(tmp_path.glob("lc-events-demo-*/s3/server/weed.log")))
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) != 0
    eventually(lambda: processes_of(tmp_path) == [])


def test_a_folder_with_a_long_name_holds_a_server_too(tmp_path):
    with S3Server(tmp_path / ("x" * 120), buckets=["bkt"]) as server:
        server.storage().write("s3://bkt/a", [b"kept"])
        assert b"".join(server.storage().read("s3://bkt/a")) == b"kept"
