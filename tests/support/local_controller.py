"""The local controller as a process of its own, and what it left on disk."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from lc_events.application.journal import Journal, open_journal
from lc_events.domain.events import LC_EVENTS, Registry
from support.tap import Tap, Tapped
from support.waiting import eventually

RUN = (sys.executable, "-m", "lc_events", "run")


class ControllerProcess:
    """`lc-events run` of node `edge1` with its state, served files and log in `folder`; a tap hears all of its topics.

    `settings` are environment variables without `LC_`, in lower case; None leaves one unset. The tap keeps its session
    for a minute, so that it misses nothing of a broker that restarts.
    """

    node = "edge1"

    def __init__(self, folder: Path, *, port: int, topic_root: str, **settings: object) -> None:
        self.root = folder / "root"
        self.state_dir = folder / "state"
        self.topic_root = topic_root
        self.tap = Tap(port, f"{topic_root}/#", session_seconds=60)
        self._log = folder / "lc.log"
        self._settings = {
            "node": self.node,
            "mqtt_url": f"mqtt://127.0.0.1:{port}",
            "mqtt_client_id": f"lc-{topic_root}",
            "topic_root": topic_root,
            "state_dir": self.state_dir,
            "root": self.root,
            "timezone": "UTC",
            "tick_seconds": 3600,
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._births = 0

    def __enter__(self) -> Self:
        self.root.mkdir(parents=True, exist_ok=True)
        self.tap.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.tap.stop()

    @property
    def log(self) -> str:
        """All that the process logged so far, over all its starts."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """The process id of the running controller."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True, arguments: Sequence[str] = (), **settings: object) -> None:
        """Start, and wait until it says that it is online; `arguments` and `settings` are for this start only."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LC_") and k != "NODENAME"}
        given = self._settings | settings
        environment |= {f"LC_{name.upper()}": str(value) for name, value in given.items() if value is not None}
        self._births = len(self.births())
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*RUN, *arguments], stdout=log, stderr=log, env=environment)
        if wait:
            self.wait_online()

    def wait_online(self) -> None:
        """Wait for the birth that follows the last start."""
        try:
            eventually(lambda: len(self.births()) > self._births or not self.is_running, what="online")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log}") from None
        assert self.is_running, self.log

    def wait(self) -> int:
        """Wait until it ends by itself and return the exit code."""
        assert self._process is not None
        return self._process.wait(20)

    def exit_code(self) -> int:
        """Start something that is to end by itself, and return its exit code."""
        self.start(wait=False)
        return self.wait_for_exit()

    def wait_for_exit(self) -> int:
        """Wait until it ended by itself, and return its exit code."""
        process, self._process = self._process, None
        assert process is not None
        try:
            return process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(self.log) from None

    def stop(self) -> int:
        """End with SIGTERM and return the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End with SIGKILL, wherever it stands."""
        self._end(signal.SIGKILL)

    def restart(self, *, kill: bool = False) -> None:
        """End and start again."""
        self.kill() if kill else self.stop()
        self.start()

    @contextlib.contextmanager
    def no_space(self) -> Iterator[None]:
        """No file of the process can grow beyond what its write-ahead log has now, if it has one."""
        pid, unlimited = self.pid, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            size = (self.state_dir / "events.db-wal").stat().st_size
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)

    def births(self) -> list[Tapped]:
        """Each time it said that it is online."""
        return [m for m in self.tap.of(self.topic("state/{node}/status")) if m.json["state"] == "online"]

    def topic(self, pattern: str) -> str:
        """A topic of CONTRACT section 2, below this test's root."""
        return f"{self.topic_root}/{pattern.format(node=self.node)}"

    def latest(self, pattern: str) -> Any:
        """The newest payload that was heard on a topic, parsed; None if there was none or an empty one."""
        heard = self.tap.of(self.topic(pattern))
        return heard[-1].json if heard and heard[-1].payload else None

    def job(self, name: str = "job1") -> Any:
        """The newest retained state of a job."""
        return self.latest(f"state/{{node}}/jobs/default/{name}")

    def errors(self) -> list[dict[str, Any]]:
        """All that was said on the errors topic."""
        return [m.json for m in self.tap.of(self.topic("errors/{node}"))]

    def journal(self) -> Journal:
        """Its store, opened to read."""
        return open_journal(self.state_dir / "events.db", Registry(LC_EVENTS))

    def file(self, url: str) -> Path:
        """Where a URL of a resource lies."""
        return self.root / url.lstrip("/")

    def write(self, url: str, text: str | bytes) -> None:
        """Write a file below the root."""
        path = self.file(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def append(self, url: str, text: str) -> None:
        """Append to a file below the root."""
        with self.file(url).open("a", encoding="utf-8", newline="") as file:
            file.write(text)

    def tree(self, url: str) -> dict[str, str | None]:
        """Files below a folder with their text, and empty folders as None, as the recordings list them."""
        found: dict[str, str | None] = {}
        for path in sorted(self.file(url).rglob("*")):
            name = "/" + path.relative_to(self.root).as_posix()
            if path.is_file():
                found[name] = path.read_bytes().decode()
            elif not any(path.iterdir()):
                found[f"{name}/"] = None
        return found

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        return process.wait(20)
