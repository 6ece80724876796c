from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """No setting of the machine, and a working folder of the test's own."""
    for name in os.environ:
        if name.startswith(("LC_", "GM_", "WORKER_")) or name in ("NODENAME", "ROOTFS_MOUNT_DIR", "TZ"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def env(monkeypatch):
    """Set variables, as in `env(LC_NODE="edge1")`."""

    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture
def config(tmp_path):
    """Write a TOML file and say where it is."""

    def write(text):
        path = tmp_path / "settings.toml"
        path.write_text(text)
        return path

    return write
