"""What an idle tick takes on disk: its JSON, and all of the store that grows with it.

python benchmarks/tick_size.py [TICKS]
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lc_events.application.journal import open_journal
from lc_events.domain import decisions as d
from lc_events.domain.events import LC_EVENTS, Registry
from lc_events.domain.job import JobState

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.sedna import condition, down, job_resource

STREAM = "default/lifelonglearningjob/digits"
BATCH = 100


def facts(number: int) -> d.Facts:
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    return d.Facts(now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "Europe/Berlin")


def store_size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("VACUUM")
    return path.stat().st_size


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.db"
        message = down(job_resource(condition("Train", "Waiting"), name="digits"), name="digits")
        first, state = d.receive_gm_message(JobState(STREAM), message, facts(0))
        with open_journal(path, Registry(LC_EVENTS), write=True) as journal:
            journal.record(first)
        before = store_size(path)
        sizes = []
        with open_journal(path, Registry(LC_EVENTS), write=True) as journal:
            for start in range(0, count, BATCH):
                events = []
                for number in range(start, start + BATCH):
                    decided, state = d.tick(state, facts(number), cause="period")
                    events += decided
                journal.record(events)
            sizes = [len(row.state) for row in journal.rows.rows(stream=STREAM, gt=1)]
        grown = (store_size(path) - before) / len(sizes)
    yearly = grown * 365 * 24 * 60 / 1e6
    print(f"{len(sizes)} idle ticks: {max(sizes)} bytes of JSON each, {grown:.0f} bytes of the store")
    print(f"one every 60 s is {yearly:.0f} MB a year and job")


if __name__ == "__main__":
    main()
