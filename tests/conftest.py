from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mosquitto import Mosquitto, find_mosquitto


@pytest.fixture(scope="session")
def shared_mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """One broker for tests that neither stop nor configure it; give each test a topic root or node of its own."""
    _need_mosquitto()
    with Mosquitto(tmp_path_factory.mktemp("mosquitto")) as broker:
        yield broker


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker of the test's own, with a database, to be killed and restarted."""
    _need_mosquitto()
    with Mosquitto(tmp_path / "mosquitto", persistence=True) as broker:
        yield broker


@pytest.fixture
def topic_root() -> str:
    """A topic root that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"


def _need_mosquitto() -> None:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
