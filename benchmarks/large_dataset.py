"""Follow a large dataset: records a second, memory, and how soon an append is counted.

    python benchmarks/large_dataset.py [--records 10000000] [--format txt|csv] [--folder DIR]

Each measurement is a process of its own, so that its memory is its own. `plain` is `for line in file: count += 1`,
the floor of the same run; ratios are against it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from lc_events.datasets import FolderWatcher, Follower, Grew, Mark, Spool

APPENDS = 20
LINES = 1000


def record(number: int, format_name: str) -> bytes:
    text = f"{number:010d},0.123456789,0.987654321," + "x" * 65
    return (text if format_name == "txt" else text[:-10] + ',"a ""b"""').encode() + b"\n"


def make(path: Path, records: int, format_name: str) -> None:
    with path.open("wb") as file:
        if format_name == "csv":
            file.write(b"number,a,b,text\n")
        for start in range(0, records, 10_000):
            file.write(b"".join(record(at, format_name) for at in range(start, min(records, start + 10_000))))


def plain(path: Path) -> dict[str, float]:
    begin = time.perf_counter()
    count = 0
    with path.open("rb") as file:
        for _ in file:
            count += 1
    return {"records": count, "seconds": time.perf_counter() - begin}


def catch_up(follower: Follower, *, keep: bool) -> int:
    while True:
        look = follower.look(keep=keep)
        if isinstance(look, Grew):
            follower.committed(look.mark)
        if not isinstance(look, Grew) or not look.more:
            return follower.mark.rows


def follower_of(path: Path, spool: Spool, mark: Mark | None = None) -> Follower:
    return Follower(path, url=str(path), format=path.suffix[1:], mark=mark, spool=spool, partial_seconds=60)


def follow(path: Path, *, keep: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        spool = Spool(Path(folder) / "spool")
        follower = follower_of(path, spool)
        begin = time.perf_counter()
        records = catch_up(follower, keep=keep)
        seconds = time.perf_counter() - begin
        found = {"records": records, "seconds": seconds} | appends(path, follower, keep=keep)
        begin = time.perf_counter()
        again = follower_of(path, Spool(Path(folder) / "spool"), follower.mark)
        again.look(keep=keep)
        found["restart_ms"] = (time.perf_counter() - begin) * 1e3
        path.touch()
        begin = time.perf_counter()
        again.look(keep=keep)
        found["touched_ms"] = (time.perf_counter() - begin) * 1e3
    return found


def appends(path: Path, follower: Follower, *, keep: bool) -> dict[str, float]:
    """Milliseconds from before an append until its records are counted, through the watcher as in the controller."""
    noticed = threading.Event()
    block = b"".join(record(at, path.suffix[1:]) for at in range(LINES))
    times = []
    with FolderWatcher(lambda _: noticed.set()) as watcher:
        watcher.watch(path)
        noticed.wait(10)
        for _ in range(APPENDS):
            expected = follower.mark.rows + LINES
            begin = time.perf_counter()
            with path.open("ab") as file:
                file.write(block)
            while follower.mark.rows < expected:
                noticed.wait(10)
                noticed.clear()
                catch_up(follower, keep=keep)
            times.append((time.perf_counter() - begin) * 1e3)
    return {"append_p50_ms": statistics.median(times), "append_max_ms": max(times)}


def measured(what: str, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", what, "--file", str(path)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--format", choices=["txt", "csv"], default="txt")
    parser.add_argument("--folder", help="where the file and its spool are made (twice the file's size)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        kinds = {
            "plain": plain,
            "spool": lambda path: follow(path, keep=True),
            "count": lambda path: follow(path, keep=False),
        }
        found = kinds[options.measure](options.file)
        found["resident_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / f"data.{options.format}"
        make(path, options.records, options.format)
        os.sync()
        print(f"{options.records:,} records, {path.stat().st_size / 1e9:.2f} GB, {options.format}")
        floor = measured("plain", path)
        rows = {"plain": floor, "count": measured("count", path), "spool": measured("spool", path)}
    for name, found in rows.items():
        rate = found["records"] / found["seconds"]
        line = f"{name:6} {rate:12,.0f} records/s  {rate / floor['records'] * floor['seconds']:5.2f} of plain"
        line += f"  {found['resident_mb']:4.0f} MB resident"
        if "append_p50_ms" in found:
            line += f"  {LINES:,} appended lines counted: p50 {found['append_p50_ms']:.0f} ms"
            line += f", max {found['append_max_ms']:.0f} ms"
            line += f"  look after a restart {found['restart_ms']:.1f} ms, after a touch {found['touched_ms']:.0f} ms"
        print(line)


if __name__ == "__main__":
    main()
