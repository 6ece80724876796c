from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from support.local_controller import ControllerProcess

from lc_events.doctor.examination import examine
from lc_events.doctor.finding import Finding, Level
from lc_events.doctor.subject import read_subject

CHECKS = [
    *("settings", "state folder", "store", "chain", "disk", "file system"),
    *("broker", "tls", "session", "acl", "controller", "link", "heads", "leftovers"),
    *("clock", "zone", "datasets", "spool", "s3", "model places", "reports", "effects", "quarantine"),
]


class Findings:
    """What an examination found, by check."""

    def __init__(self, found: list[Finding]) -> None:
        self.all = found

    def __str__(self) -> str:
        return "\n".join(map(str, self.all))

    def of(self, check: str) -> list[Finding]:
        return [finding for finding in self.all if finding.check == check or finding.check.startswith(f"{check} ")]

    def one(self, check: str, level: str) -> Finding:
        """The only finding of a check, which must have this level."""
        [finding] = self.of(check)
        assert finding.level is Level(level), finding
        return finding

    @property
    def wrong(self) -> list[str]:
        """What is wrong, in the order of the lines."""
        return [finding.check for finding in self.all if finding.level is Level.WRONG]

    @property
    def checks(self) -> set[str]:
        """Which checks have said something; datasets each have a line of their own."""
        return {"datasets" if finding.check.startswith("dataset ") else finding.check for finding in self.all}


Examined = Callable[..., Findings]


@pytest.fixture
def examined(monkeypatch) -> Examined:
    """Examine with these settings, written as environment variables without `LC_` in lower case."""

    def run(prefix: str = "LC", **settings: object) -> Findings:
        for name in [name for name in os.environ if name.startswith(("LC_", "GM_"))]:
            monkeypatch.delenv(name)
        for name, value in settings.items():
            monkeypatch.setenv(f"{prefix}_{name.upper()}", str(value))
        return Findings(list(examine(read_subject({}))))

    return run


@pytest.fixture
def checks() -> list[str]:
    """The names of all checks of a controller."""
    return CHECKS


@pytest.fixture
def settings_of() -> Callable[..., dict[str, object]]:
    """What a controller was started with, and changes to it."""
    return _settings_of


def _settings_of(lc: ControllerProcess, **changes: object) -> dict[str, object]:
    return {
        "node": lc.node,
        "mqtt_url": f"mqtt://127.0.0.1:{lc.tap.port}",
        "topic_root": lc.topic_root,
        "state_dir": lc.state_dir,
        "root": lc.root,
        "timezone": "UTC",
        **changes,
    }
