"""After a restart: how soon every waiting job is decided again, and how much memory that takes.

    python benchmarks/restart.py [--jobs 500] [--events 200] [--runs 3]

The store is made beforehand: each job was inserted, ticked and reported on by workers, and waits for samples. Measured
from the start of the process to the commit that holds the last job's tick of cause `restart`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

from support.mosquitto import Mosquitto  # noqa: E402
from support.sedna import condition, down, job_resource  # noqa: E402
from worker_results import memory_mb, result  # noqa: E402

from lc_events.application.journal import open_journal  # noqa: E402
from lc_events.domain.decisions import Facts, receive_gm_message, receive_worker_result, tick  # noqa: E402
from lc_events.domain.events import LC_EVENTS, Event, Registry  # noqa: E402
from lc_events.domain.job import JobState  # noqa: E402
from lc_events.messages.worker import read_worker  # noqa: E402


def history(number: int, count: int) -> list[Event]:
    """A job that waits, with a worker's result among every ten events."""
    name = f"job{number}"
    waiting = condition("Train", "Waiting", "2024-01-01T00:00:00Z")
    message = down(job_resource(waiting, name=name, output_dir=f"/output/{name}"), name=name, message_id="m-1")
    state = JobState(f"default/lifelonglearningjob/{name}")
    events, state = receive_gm_message(state, message, Facts("2024-01-01T00:00:00.000000Z"))
    while len(events) < count:
        now = f"2024-01-01T{len(events) // 3600:02}:{len(events) // 60 % 60:02}:{len(events) % 60:02}.000000Z"
        if len(events) % 10 == 5:
            _, payload = result(number, number + 1)
            more, state = receive_worker_result(state, read_worker(payload, worker=f"w{number}"), now)
        else:
            more, state = tick(state, Facts(now), cause="period")
        events += more
    return events


def make_store(path: Path, jobs: int, count: int) -> None:
    journal = open_journal(path, Registry(LC_EVENTS), write=True)
    journal.rows.set_about("node", "edge1")
    histories = [history(number, count) for number in range(jobs)]
    for start in range(0, count, 20):
        for first in range(0, jobs, 50):
            journal.record([event for h in histories[first : first + 50] for event in h[start : start + 20]])
    newest = max(row.notification_id for row in journal.rows.rows(gt=jobs * count - 10))
    journal.record([], positions={"outbox": newest})
    journal.rows.checkpoint()
    journal.close()


def decided(path: Path, after: int) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        statement = "SELECT count(*) FROM stored_events WHERE rowid > ? AND CAST(state AS TEXT) LIKE '%\"restart\"%'"
        found: int = connection.execute(statement, (after,)).fetchone()[0]
    connection.close()
    return found


def newest(path: Path) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        found: int = connection.execute("SELECT max(rowid) FROM stored_events").fetchone()[0]
    connection.close()
    return found


def restart(folder: Path, port: int, jobs: int) -> tuple[float, float]:
    env = {
        **os.environ,
        "LC_NODE": "edge1",
        "LC_MQTT_URL": f"mqtt://127.0.0.1:{port}",
        "LC_STATE_DIR": str(folder / "state"),
        "LC_ROOT": str(folder / "root"),
        "LC_LOG": "warning",
    }
    path = folder / "state" / "events.db"
    before = newest(path)
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "lc_events", "run"], env=env)
    try:
        while decided(path, before) < jobs:
            assert process.poll() is None
            assert time.perf_counter() - began < 60
            time.sleep(0.02)
        seconds = time.perf_counter() - began
        time.sleep(2)
        return seconds, memory_mb(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Mosquitto(Path(name) / "mosquitto") as broker:
        folder = Path(name)
        (folder / "root").mkdir()
        make_store(folder / "state" / "events.db", given.jobs, given.events)
        size = (folder / "state" / "events.db").stat().st_size / 1e6
        found = [restart(folder, broker.port, given.jobs) for _ in range(given.runs)]
    seconds = [each for each, _ in found]
    print(f"{given.jobs} jobs of {given.events} events, {size:.0f} MB on disk")
    print(f"all decided again after {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
    print(f"resident: {max(mb for _, mb in found):.0f} MB")


if __name__ == "__main__":
    main()
