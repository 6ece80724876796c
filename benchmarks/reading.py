"""Reading: `show` and `at`, replay, verify and snapshots, beside the floor of the same run (SELECT and orjson).

    python benchmarks/reading.py            # 500 jobs of 200 events, and one job of 100,000 events
    python benchmarks/reading.py --quick    # a tenth of that

Each number is the median of five runs on stores in a temporary folder; commands are processes of their own, less the
start of the interpreter.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from job_life import Life

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.verify import check_store
from lc_events.application.journal import open_journal
from lc_events.application.snapshots import Snapshots

RUNS = 5
BATCH = 500


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true")
    scale = 10 if options.parse_args().quick else 1
    jobs, events, long = 500 // scale, 200, 100_000 // scale
    with tempfile.TemporaryDirectory() as folder:
        many, one, snapped = (Path(folder, f"{name}.db") for name in ("many", "one", "snapped"))
        for number in range(jobs):
            write(many, f"job{number}", events)
        write(one, "job0", long)
        write(snapped, "job0", long, snapshots=True)
        print(f"{jobs} jobs x {events} events")
        rates(many, jobs * events)
        commands(many)
        print(f"one job of {long} events")
        opening(one, "from its first event")
        opening(snapped, "by its newest snapshot")
        measure_command(snapped, "show job0 (a snapshot every 5,000)", "show", "job0")
        measure_command(snapped, "at job0 --time", "at", "job0", "--time", "2026-01-20T00:00:00Z")


def write(path: Path, name: str, events: int, *, snapshots: bool = False) -> None:
    journal = open_journal(path, CONTROLLER.registry, write=True)
    journal.rows.set_about("node", "edge1")
    keeper = Snapshots(journal) if snapshots else None
    life, batch = Life(name), []
    for event in life.events():
        batch.append(event)
        if len(batch) == BATCH or event.originator_version == events:
            journal.record(batch)
            batch.clear()
            if keeper is not None and life.state.version == event.originator_version:
                keeper.consider([life.state])
        if event.originator_version == events:
            break
    journal.close()


def opened(path: Path) -> Archive:
    return Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")


def rates(path: Path, events: int) -> None:
    def floor() -> None:
        archive = opened(path)
        for row in archive.journal.rows.scan():
            orjson.loads(row.state)

    base = per_second(floor, events)
    print(f"  floor: SELECT and orjson   {base:>9,.0f} events/s")
    for what, action in {
        "replay of every job": lambda: list(opened(path).states()),
        "verify": lambda: check_store(opened(path), {}),
    }.items():
        rate = per_second(action, events)
        print(f"  {what:<26} {rate:>9,.0f} events/s   {rate / base:.2f} of the floor")


def commands(path: Path) -> None:
    for args in (
        ("show", "job7"),
        ("at", "job7", "--version", "150"),
        ("at", "job7", "--time", "2026-01-01T02:00:00Z"),
        ("why", "job7"),
        ("history", "job7"),
        ("verify", "job7"),
        ("jobs",),
    ):
        measure_command(path, " ".join(args), *args)


def opening(path: Path, how: str) -> None:
    seconds = median(lambda: opened(path).state("default/lifelonglearningjob/job0"))
    print(f"  {'opened ' + how:<36} {seconds * 1000:>7,.0f} ms")


def measure_command(path: Path, what: str, *args: str) -> None:
    environment = {**os.environ, "LC_STORE": str(path), "LC_TIMEZONE": "UTC"}

    def run(*command: str) -> Callable[[], object]:
        return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    start = median(run(sys.executable, "-c", "pass"))
    seconds = median(run(sys.executable, "-m", "lc_events", *args))
    print(f"  {what:<36} {(seconds - start) * 1000:>7,.0f} ms beyond the interpreter's {start * 1000:,.0f} ms")


def median(action: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def per_second(action: Callable[[], object], events: int) -> float:
    return events / median(action)


if __name__ == "__main__":
    main()
