from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import threading
import time

import pytest

from lc_events.datasets import Follower, Grew, Spool

RECORDS = 200_000

MEASURE = """
import json, resource, sys
from pathlib import Path
from lc_events.datasets import Follower, Grew, Spool
path, spool = Path(sys.argv[1]), Spool(Path(sys.argv[2]))
follower = Follower(path, url="/data", format="txt", mark=None, spool=spool, partial_seconds=60)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
while isinstance(look := follower.look(keep=True), Grew):
    follower.committed(look.mark)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"rows": follower.mark.rows, "spooled": spool.length, "grown_kb": grown}))
"""


@pytest.mark.parametrize("line", [b"x" * 199 + b"\n", b"x" * 19_999_999 + b"\n"], ids=["many lines", "long lines"])
def test_memory_does_not_grow_with_the_file(tmp_path, line):
    path = tmp_path / "data.txt"
    count = 60_000_000 // len(line)
    with path.open("wb") as file:
        for _ in range(count):
            file.write(line)
    command = [sys.executable, "-c", MEASURE, str(path), str(tmp_path / "spool")]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert (found["rows"], found["spooled"]) == (count, count)
    assert found["grown_kb"] < 30_000


@pytest.mark.parametrize("format_name", ["txt", "csv"])
def test_a_file_of_200000_records_is_spooled_as_it_stands(tmp_path, format_name):
    path = tmp_path / "data"
    extra = b',"a\nb"' if format_name == "csv" else b""
    content = b"".join(b"%d,%d%b\r\n" % (at, at * at, extra) for at in range(RECORDS))
    path.write_bytes((b"h\r\n" if format_name == "csv" else b"") + content)
    spool = Spool(tmp_path / "spool", segment_bytes=1 << 20)
    follower = Follower(path, url="/data", format=format_name, mark=None, spool=spool, partial_seconds=60)
    while isinstance(look := follower.look(keep=True), Grew):
        follower.committed(look.mark)
    assert follower.mark.rows == spool.length == RECORDS
    expected = content.replace(b"\r\n", b"\n")
    digest = hashlib.sha256()
    for chunk in spool.read(0, RECORDS):
        digest.update(chunk)
    assert digest.hexdigest() == hashlib.sha256(expected).hexdigest()
    middle = b"%d,%d%b\n" % (RECORDS // 2, (RECORDS // 2) ** 2, extra)
    assert b"".join(spool.read(RECORDS // 2, RECORDS // 2 + 1)) == middle


def test_nothing_is_lost_of_a_file_that_is_written_while_it_is_read(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"")
    content = b"".join(b"%d\n" % at for at in range(20_000))
    chance = random.Random(1)

    def write():
        at = 0
        with path.open("ab", buffering=0) as file:
            while at < len(content):
                at += file.write(content[at : at + chance.randrange(1, 2000)])
                time.sleep(0)

    spool = Spool(tmp_path / "spool")
    follower = Follower(path, url="/data", format="txt", mark=None, spool=spool, partial_seconds=60)
    writer = threading.Thread(target=write)
    writer.start()
    deadline = time.monotonic() + 60
    while follower.mark.rows < 20_000 and time.monotonic() < deadline:
        look = follower.look(keep=True)
        if isinstance(look, Grew):
            follower.committed(look.mark)
    writer.join()
    assert b"".join(spool.read(0, spool.length)) == content
