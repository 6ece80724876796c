"""docker-compose.yml as a user runs it, by docker-compose 1.29 or Compose v2."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any, Self

import orjson

from support.waiting import eventually

ROOT = Path(__file__).parents[2]


def why_not() -> str | None:
    """Why there are no compose tests on this machine; None if there can be."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    if subprocess.run(["docker", "info"], check=False, capture_output=True, timeout=60).returncode != 0:
        return "no Docker engine answers `docker info`"
    if not find_compose():
        return "neither `docker compose` nor docker-compose is installed"
    return None


def find_compose() -> list[str]:
    """The command, empty if there is none."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    found = subprocess.run(["docker", "compose", "version"], check=False, capture_output=True, timeout=60)
    return ["docker", "compose"] if found.returncode == 0 else []


class Compose:
    """One project; at the end its containers, networks and volumes are removed."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.project = f"lc-events-test-{uuid.uuid4().hex[:8]}"
        self._command = [*command, "-p", self.project, "-f", str(ROOT / "docker-compose.yml")]
        self._environment = {**os.environ, **environment}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run("--profile", "tls", "--profile", "s3", "down", "-v", "--timeout", "5", timeout=300)

    def run(self, *arguments: str, timeout: float = 120.0) -> str:
        """Run a subcommand and return what it printed; what it complained about is shown if it fails."""
        done = subprocess.run(
            [*self._command, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self._environment,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def execute(self, service: str, *command: str) -> str:
        """Run a command in a service's container."""
        return self.run("exec", "-T", service, *command)

    def docker(self, *arguments: str) -> str:
        """Run a command of the engine itself."""
        return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True, timeout=120).stdout

    def container(self, service: str) -> str:
        """The id of a service's container, also when it has ended."""
        return self.docker(
            *("ps", "-aq", "--filter", f"label=com.docker.compose.project={self.project}"),
            *("--filter", f"label=com.docker.compose.service={service}"),
        ).strip()

    def state(self, service: str) -> dict[str, Any]:
        """What the engine says of a service's container."""
        state: dict[str, Any] = orjson.loads(self.docker("inspect", "-f", "{{json .State}}", self.container(service)))
        return state

    def wait_healthy(self, service: str, timeout: float = 60.0) -> None:
        """Wait until a service's own health check says so."""
        eventually(lambda: self.state(service)["Health"]["Status"] == "healthy", timeout, f"{service} healthy")

    def wait_done(self, service: str, timeout: float = 60.0) -> None:
        """Wait until a one-shot has ended well."""
        eventually(lambda: self.state(service)["Status"] == "exited", timeout, f"{service} done")
        assert self.state(service)["ExitCode"] == 0, self.run("logs", service)

    def secret(self, service: str, path: str) -> str:
        """What stands in a file of a container that belongs to the users' programs."""
        return self.run("exec", "-T", "-u", "10001", service, "cat", path).strip()

    def show(self, node: str) -> dict[str, Any]:
        """The state of the digits job of a node, from the node's own store."""
        job = f"default/digits-{node}"
        state: dict[str, Any] = orjson.loads(self.execute(f"{node}-lc", "lc-events", "show", job, "-o", "json"))
        return state

    def add_samples(self, node: str, round_number: int) -> None:
        """Have the samples of a round appended to the dataset of a node."""
        script = ("python", "/opt/examples/digits/make_samples.py", "/edge/data/digits.csv")
        self.execute(f"{node}-worker", *script, "--round", str(round_number))
