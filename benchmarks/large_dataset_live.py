"""A running controller beside a dataset of 10 million samples: memory, appends, restart.

    python benchmarks/large_dataset_live.py [--records 10000000] [--jobs 1]

An append counts when the controller's `sedna/up` says the new number; a restart, when an append after it is counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

from large_dataset import make, record  # noqa: E402
from support.local_controller import ControllerProcess  # noqa: E402
from support.mosquitto import Mosquitto  # noqa: E402
from support.played_gm import PlayedGm  # noqa: E402
from support.waiting import eventually  # noqa: E402
from worker_results import memory_mb  # noqa: E402

APPENDS = 20
LINES = 1000
NEVER = {"condition": {"operator": ">", "threshold": 10**12, "metric": "num_of_samples"}}


class Counted:
    """Waits for the numbers that come up."""

    def __init__(self, lc: ControllerProcess) -> None:
        self._lc = lc

    def wait_for(self, count: int, seconds: float) -> float:
        said = self._lc.topic("up/{node}/dataset/default/ds")
        began = time.perf_counter()
        self._lc.tap.wait_for(lambda m: m.topic == said and m.json["content"]["numberOfSamples"] >= count, seconds)
        return time.perf_counter() - began


def peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def append(path: Path, at: int) -> None:
    data = b"".join(record(number, "txt") for number in range(at, at + LINES))
    with path.open("ab") as file:
        file.write(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Mosquitto(Path(name) / "mosquitto") as broker:
        folder = Path(name)
        path = folder / "root" / "data" / "ds.txt"
        path.parent.mkdir(parents=True)
        make(path, given.records, "txt")
        with ControllerProcess(folder, port=broker.port, topic_root="sedna") as lc:
            gm, counted, total = PlayedGm(lc), Counted(lc), given.records
            began = time.perf_counter()
            gm.dataset()
            for number in range(given.jobs):
                gm.job(f"job{number}", trigger=NEVER)
            counted.wait_for(total, 600)
            taken = [f"job{number}" for number in range(given.jobs)]
            eventually(lambda: all(lc.job(each) and lc.job(each)["samples"]["seen"] >= total for each in taken), 600)
            print(f"followed in {time.perf_counter() - began:.0f} s, {peak_mb(lc.pid):.0f} MB resident at most")
            times = []
            for _ in range(APPENDS):
                append(path, total)
                total += LINES
                times.append(counted.wait_for(total, 10))
            print(f"append of {LINES}: p50 {statistics.median(times) * 1e3:.0f} ms, max {max(times) * 1e3:.0f} ms")
            lc.stop()
            append(path, total)
            total += LINES
            began = time.perf_counter()
            lc.start()
            counted.wait_for(total, 60)
            print(f"after a restart: {time.perf_counter() - began:.1f} s, {memory_mb(lc.pid):.0f} MB resident")


if __name__ == "__main__":
    main()
