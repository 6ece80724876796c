from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm


@pytest.fixture
def lc(shared_mosquitto, topic_root: str, tmp_path: Path) -> Iterator[ControllerProcess]:
    """A running controller of the test's own, without ticks for the test's time."""
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root) as controller:
        yield controller


@pytest.fixture
def gm(lc: ControllerProcess) -> PlayedGm:
    return PlayedGm(lc)
