from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from lc_events.messages.worker import WorkOrder
from lc_events.workers.settings import AgentSettings


@pytest.fixture
def settings(tmp_path: Path) -> AgentSettings:
    """An agent of edge1 whose root and state lie in the test's folder."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/home/agent", "WORKER_MQTT_URL": "mqtt://u:p@h"}
    root = tmp_path / "root"
    root.mkdir()
    return AgentSettings(
        node="edge1",
        state_dir=tmp_path / "state",
        root=root,
        programs=tmp_path / "programs",
        grace_seconds=0.5,
        environ=environ,
    )


@pytest.fixture
def order_of(tmp_path: Path) -> Callable[..., WorkOrder]:
    """Makes an order that runs a Python program given as text."""

    def make(program: str = "", **changes: object) -> WorkOrder:
        args = ["-c", textwrap.dedent(program)]
        known = {"id": "o-1", "job": "job1", "stage": "Train", "round": 1, "command": ["python"], "args": args}
        return WorkOrder.model_validate({**known, **changes})

    return make
