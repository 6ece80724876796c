"""Memory and CPU of an idle local controller with one job, beside a bare Python and paho client (Linux).

python benchmarks/idle.py [SECONDS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.local_controller import ControllerProcess
from support.mosquitto import Mosquitto
from support.played_gm import PlayedGm
from support.waiting import eventually

SETTLED = 15.0
"""Seconds until nothing of the start is left."""

BARE = """
import sys, paho.mqtt.client as paho
client = paho.Client(paho.CallbackAPIVersion.VERSION2)
client.connect("127.0.0.1", int(sys.argv[1]))
client.subscribe("sedna/down/#", qos=1)
client.loop_forever()
"""


@dataclass
class Watched:
    name: str
    pid: int
    cpu_before: float = 0.0

    def begin(self) -> None:
        self.cpu_before = self.cpu_seconds()

    def row(self, seconds: float) -> str:
        cpu = 100 * (self.cpu_seconds() - self.cpu_before) / seconds
        return f"{self.name:28}{self.megabytes('Rss'):>9.1f}{self.megabytes('Pss'):>9.1f}{cpu:>8.2f} %"

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self, what: str) -> float:
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) / 1024
        raise KeyError(what)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as name, Mosquitto(Path(name) / "mosquitto") as broker:
        bare = subprocess.Popen([sys.executable, "-c", BARE, str(broker.port)])
        try:
            with ControllerProcess(Path(name), port=broker.port, topic_root="sedna", tick_seconds=None) as lc:
                gm = PlayedGm(lc)
                lc.write("/data/ds.txt", "one\ntwo\n")
                gm.dataset()
                gm.job()
                gm.expect({"numberOfSamples": 2})
                eventually(lambda: (s := lc.job()) and s["samples"]["seen"] == 2)
                time.sleep(SETTLED)
                watched = [Watched("lc-events run, one job", lc.pid), Watched("bare Python with paho", bare.pid)]
                for each in watched:
                    each.begin()
                time.sleep(seconds)
                print(f"idle for {seconds:.0f} s{'RSS MB':>25}{'PSS MB':>9}{'CPU':>10}")
                for each in watched:
                    print(each.row(seconds))
        finally:
            bare.terminate()
            bare.wait()


if __name__ == "__main__":
    main()
