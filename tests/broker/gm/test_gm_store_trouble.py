from __future__ import annotations

import logging
import sqlite3

import pytest
from support.gm import controller_says, job_manifest, train_input
from support.waiting import eventually

from lc_events.errors import IntegrityError
from lc_events.gm.global_manager import GlobalManager


def test_while_the_store_cannot_be_written_nothing_is_confirmed_and_nothing_is_lost(
    cloud, edge1, dataset, caplog
) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    edge1.told("Train/Waiting")
    other = sqlite3.connect(cloud.folder / "events.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.ERROR):
        report = edge1.report(controller_says("Train", "Ready", train_input()), wait=False)
        eventually(lambda: "nothing is acknowledged until it works again" in caplog.text, 20)
    assert cloud.tap.of(cloud.topics.down_ack("edge1")) == []
    other.execute("ROLLBACK")
    other.close()
    edge1.confirmed(report, timeout=20)
    shown = cloud.show()
    assert [c["type"] for c in shown["conditions"]] == ["Waiting", "Ready", "Starting"]
    assert shown["counts"]["reports"] == 1


def test_a_damaged_store_is_refused_in_words(cloud, dataset) -> None:
    cloud.start()
    cloud.apply(dataset)
    cloud.stop()
    path = cloud.folder / "events.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 3] = b"\x55" * (4096 * 2)
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match="restore it from a backup"):
        GlobalManager(cloud.folder, cloud.mqtt, topics=cloud.topics).run()
