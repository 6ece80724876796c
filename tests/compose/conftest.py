from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from support.compose import Compose, find_compose, why_not
from support.ports import free_port
from support.tap import Tap


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """They take minutes and an engine, so they are for those who ask for them."""
    if "compose" in config.option.markexpr:
        return
    skip = pytest.mark.skip(reason="asked for by: pytest -m compose")
    for item in items:
        if item.get_closest_marker("compose"):
            item.add_marker(skip)


@dataclass(frozen=True)
class Running:
    """The services of docker-compose.yml, and one who has heard all of the cloud's broker since its beginning."""

    compose: Compose
    auditor: Tap


@pytest.fixture(scope="session")
def running() -> Iterator[Running]:
    """A project of its own on free ports, built and started as a user does; its volumes go with it."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    names = ("CLOUD_PORT", "CLOUD_TLS_PORT", "EDGE1_PORT", "EDGE2_PORT", "S3_PORT")
    ports = {name: str(free_port()) for name in names}
    with ExitStack() as stack:
        compose = stack.enter_context(Compose(find_compose(), ports))
        # the broker first, so that the auditor is there before the first event
        compose.run("up", "-d", "--build", "cloud-broker", timeout=1800)
        compose.wait_healthy("cloud-broker", 120)
        auditor = Tap(
            int(ports["CLOUD_PORT"]),
            "sedna/events/#",
            "sedna/state/#",
            username="auditor",
            password=compose.secret("cloud-broker", "/secrets/cloud/users/auditor"),
            session_seconds=3600,
        )
        stack.enter_context(auditor)
        compose.run("up", "-d", "--build", timeout=1800)
        yield Running(compose, auditor)
