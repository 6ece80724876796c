"""Brokers with the project's own configuration, as `mosquitto/prepare` and `mosquitto/certificates` make it."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.mosquitto import Mosquitto, find_mosquitto
from support.ports import free_port

SCRIPTS = Path(__file__).parents[2] / "mosquitto"

TESTER = "tester"
"""The name of a user who may do everything, to see and to say what a role may not."""


@dataclass(frozen=True)
class Prepared:
    """A broker that is prepared and not yet started; `tls_port` answers if it was given certificates."""

    folder: Path
    port: int
    tls_port: int
    data: Path

    @property
    def config(self) -> Path:
        return self.folder / "mosquitto.conf"

    def password(self, user: str) -> str:
        """The password that `prepare` made for a user, or that of the tester."""
        return (self.folder / "users" / user).read_text().strip()

    def login(self, user: str) -> dict[str, str]:
        """User and password as keyword arguments."""
        return {"username": user, "password": self.password(user)}

    def url(self, user: str) -> str:
        """The plain listener with user and password, as `LC_MQTT_URL` takes it."""
        return f"mqtt://{user}:{self.password(user)}@127.0.0.1:{self.port}"

    def broker(self) -> Mosquitto:
        """The broker itself, which keeps its log and database in `data`."""
        return Mosquitto(self.data, config=self.config, port=self.port)


def prepare(place: str, folder: Path, *nodes: str, options: tuple[str, ...] = ()) -> Prepared:
    """Run `mosquitto/prepare` for a broker on free loopback ports, and add the tester to its users."""
    prepared = Prepared(folder, free_port(), free_port(), folder / "data")
    prepared.data.mkdir(parents=True, exist_ok=True)
    ports = ("--port", str(prepared.port), "--tls-port", str(prepared.tls_port), "--bind", "127.0.0.1")
    user = ("--broker-user", getpass.getuser())  # another one cannot go into the test's folder
    run("prepare", place, str(folder), *ports, "--data", str(prepared.data), *user, *options, *nodes)
    with (folder / "rights").open("a") as rights:
        rights.write(f"user {TESTER}\ntopic readwrite #\ntopic readwrite $hw/#\n")
    (folder / "users" / TESTER).write_text("secret")
    passwords = str(folder / "passwords")
    subprocess.run(["mosquitto_passwd", "-b", passwords, TESTER, "secret"], check=True, capture_output=True)
    return prepared


def give_bridge_password(cloud: Prepared, edge_folder: Path, node: str) -> None:
    """Carry the password of a node's bridge from the cloud to the edge, as an operator does."""
    users = edge_folder / "users"
    users.mkdir(parents=True, exist_ok=True)
    shutil.copy(cloud.folder / "users" / f"bridge-{node}", users)


def certificates(authority: Path, folder: Path, kind: str, *names: str, days: int | None = None) -> Path:
    """Run `mosquitto/certificates`; returns `folder`."""
    run(
        "certificates",
        str(authority),
        str(folder),
        kind,
        *names,
        environment={} if days is None else {"DAYS": f"{days}"},
    )
    return folder


def run(script: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
    """Run one of the scripts, or skip the test where its program is missing; what it said is shown when it fails."""
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    if script == "certificates" and shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    done = attempt(script, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr


def attempt(
    script: str, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts, whatever comes of it."""
    command = [str(SCRIPTS / script), *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}
    )
