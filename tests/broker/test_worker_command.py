from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys

import pytest
from support.waiting import eventually


@pytest.fixture
def start_worker(tmp_path, shared_mosquitto, topic_root):
    """Start `lc-events worker` as a user would; whatever still runs at the end of the test is ended."""
    started = []

    def start(node):
        variables = {"WORKER_NODE": node, "WORKER_STATE_DIR": str(tmp_path), "WORKER_TOPIC_ROOT": topic_root}
        process = subprocess.Popen(
            [sys.executable, "-m", "lc_events", "worker", "--mqtt-url", shared_mosquitto.url],
            env=os.environ | variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_agent_connects_under_its_node_and_ends_in_order_when_asked(start_worker, shared_mosquitto, number):
    node = f"edge{number}"
    worker = start_worker(node)
    eventually(lambda: f" as worker-{node} " in shared_mosquitto.log, what="the agent connects")

    worker.send_signal(number)
    _, log = worker.communicate(timeout=30)

    assert worker.returncode == 0
    assert "Traceback" not in log
    assert log.splitlines()[-1].endswith("stopped; 0 reports wait for the local controller")


def test_a_second_agent_on_a_state_folder_is_a_conflict(start_worker, tmp_path):
    with (tmp_path / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        worker = start_worker("edge1")
        _, log = worker.communicate(timeout=30)

    assert worker.returncode == 4
    advice = "end it; for other nodes, give this program another WORKER_STATE_DIR"
    assert log == f"lc-events: {tmp_path} is in use by another process: {advice}\n"
