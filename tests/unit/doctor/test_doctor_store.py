from __future__ import annotations

import os

import pytest
from support.given import arrive, given, gm, ticked
from support.ports import free_port
from support.sedna import condition
from support.stores import stored

from lc_events.doctor.examination import examine
from lc_events.doctor.finding import Level
from lc_events.doctor.subject import read_subject

PAGE = 4096


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """What is found where a page in the middle of the store is overwritten, by check."""
    for name in [name for name in os.environ if name.startswith(("LC_", "GM_"))]:
        monkeypatch.delenv(name)
    life = [command for _ in range(30) for command in (arrive(1), *[ticked()] * 12)]
    path = stored(tmp_path / "events.db", given(gm(condition("Train", "Waiting"), train_prob=0), *life).events)
    content = path.read_bytes()
    middle = len(content) // PAGE // 2 * PAGE
    path.write_bytes(content[:middle] + b"\x55" * PAGE + content[middle + PAGE :])
    monkeypatch.setenv("LC_NODE", "edge1")
    monkeypatch.setenv("LC_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("LC_MQTT_URL", f"mqtt://127.0.0.1:{free_port()}")
    return {finding.check: finding for finding in examine(read_subject({}))}


def test_a_damaged_database_is_told_on_one_line(damaged):
    assert damaged["store"].level is Level.WRONG
    assert "is damaged: " in damaged["store"].says
    assert "\n" not in damaged["store"].says


def test_what_rests_on_a_damaged_database_is_skipped(damaged):
    assert damaged["chain"].level is Level.WRONG
    assert {damaged[check].level for check in ("clock", "reports", "effects", "datasets", "spool")} == {Level.SKIPPED}
