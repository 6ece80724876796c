"""A large dataset object that grows: only what is new is fetched, in bounded memory.

`LC_TEST_OBJECT_MIB=1024` makes it as large as a dataset may well be; takes minutes and twice its size on disk.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.s3 import annotations, s3_dataset
from support.s3_proxy import S3Proxy
from support.waiting import eventually

SIZE = int(os.environ.get("LC_TEST_OBJECT_MIB", "48")) << 20
WIDTH = 128
LINES = SIZE // WIDTH
NEW = 1000
NEVER = {"condition": {"operator": ">", "threshold": 1e12, "metric": "num_of_samples"}}
PAYLOAD = b" " + b"x" * (WIDTH - 12) + b"\n"


def lines(first, last):
    for start in range(first, last, 10_000):
        numbers = range(start, min(start + 10_000, last))
        yield b"".join(b"%010d" % number + PAYLOAD for number in numbers)


def peak_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


@pytest.mark.timeout(60 + SIZE // (1 << 20) * 2)
def test_of_a_large_object_only_the_tail_is_fetched(shared_mosquitto, topic_root, tmp_path, s3_server, prefix):
    storage, url, wait = s3_server.storage(), f"{prefix}/ds.txt", 60 + SIZE // (1 << 20)
    storage.write(url, lines(0, LINES))
    with (
        S3Proxy(s3_server.endpoint) as proxy,
        ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root, dataset_seconds=1) as lc,
    ):
        gm = PlayedGm(lc)
        given = annotations(proxy.endpoint, s3_server.access_key, s3_server.secret_key)
        gm.job("job1", trigger=NEVER)
        s3_dataset(gm, url, given)
        counted = lc.tap.wait_for(lambda message: seen(message) == LINES, wait)
        assert counted.json["error"] is None
        first_fetch = fetched(proxy)
        assert SIZE <= first_fetch < SIZE * 1.1

        proxy.passed.clear()
        storage.write(url, lines(0, LINES + NEW))
        lc.tap.wait_for(lambda message: seen(message) == LINES + NEW, wait)
        tail = fetched(proxy)
        assert NEW * WIDTH <= tail <= NEW * WIDTH + 3 * 4096
        eventually(lambda: lc.job()["samples"]["seen"] == LINES + NEW)

        first_peak = peak_mb(lc.pid)
        lc.restart(kill=True)
        proxy.passed.clear()
        storage.write(url, lines(0, LINES + 2 * NEW))
        lc.tap.wait_for(lambda message: seen(message) == LINES + 2 * NEW, wait)
        assert fetched(proxy) <= 2 * (1 << 20)
        peak = max(first_peak, peak_mb(lc.pid))
        print(f"\n{SIZE >> 20} MiB: {tail} bytes fetched for {NEW} new lines, {peak:.0f} MB resident at most")  # noqa: T201 - for -s
        assert peak < 200
    storage.delete(url)


def seen(message):
    """Samples that the dataset's state says; None for any other message."""
    is_state = "/state/" in message.topic and message.topic.endswith("/datasets/default/ds")
    return message.json["samples"] if is_state else None


def fetched(proxy):
    return sum(p.answered for p in proxy.passed if p.method == "GET")
