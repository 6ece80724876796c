from __future__ import annotations

import pytest

from lc_events.runtime.lock import FolderLock


@pytest.fixture(autouse=True)
def state_dir(monkeypatch, tmp_path):
    """Programs that would start by mistake leave nothing in the checkout."""
    for prefix in ("LC", "WORKER"):
        monkeypatch.setenv(f"{prefix}_STATE_DIR", str(tmp_path))
        monkeypatch.setenv(f"{prefix}_NODE", "edge1")
    return tmp_path


@pytest.mark.parametrize("program", ["run", "worker"])
def test_a_wrong_setting_ends_a_program_before_it_begins(lc_events, program, state_dir):
    result = lc_events(program, "--node", "gm", "--log", "loud")

    assert result.code == 2
    assert result.err.startswith("lc-events: ")
    assert "--node is 'gm', but must be 1 to 64 of" in result.err
    assert "--log is 'loud', but must be 'debug', 'info', 'warning' or 'error'" in result.err
    assert list(state_dir.iterdir()) == []


@pytest.mark.parametrize(("program", "setting"), [("run", "LC_ROOT"), ("worker", "WORKER_ROOT")])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_root_that_is_not_there_is_said_at_the_start(python, state_dir, program, setting, is_there):
    root = state_dir / "root"
    if is_there:
        root.mkdir()
    lock = FolderLock(state_dir, "LC_STATE_DIR")  # so that it ends at once
    result = python(f"from lc_events.cli.main import main; main(['{program}', '--root', '{root}'])")
    lock.release()

    assert result.code == 4
    assert (f"{setting}: there is no folder {root}" in result.err) != is_there
