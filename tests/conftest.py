from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.mosquitto import Mosquitto, find_mosquitto

# no test is judged by time: a busy machine is no fault
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=0, help="how long each test of accidents runs (default: shortly)")
    parser.addoption("--seed", type=int, default=None, help="repeat the accidents of a run that printed this seed")


@pytest.fixture
def accidents(request: pytest.FixtureRequest) -> random.Random:
    """The source of accidents; its seed is printed, for a run that fails is to be looked at again."""
    given = request.config.getoption("--seed")
    seed = random.SystemRandom().randrange(10**6) if given is None else given
    print(f"--seed {seed}")  # noqa: T201 - shown where the test fails
    return random.Random(seed)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if minutes := config.getoption("--minutes"):
        for item in items:
            if "minutes" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.timeout(minutes * 60 + 300))


@pytest.fixture
def minutes(request: pytest.FixtureRequest) -> float:
    """How long a test of accidents runs, 0 for shortly."""
    found: float = request.config.getoption("--minutes")
    return found


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
