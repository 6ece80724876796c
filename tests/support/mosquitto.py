"""A real Mosquitto for a test: started on a free loopback port, killed and restarted at will."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

from support.ports import answers, free_port


def find_mosquitto() -> str | None:
    """Path of the program; it lies in /usr/sbin, which is not on everybody's PATH."""
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin")


class Mosquitto:
    """One broker with its configuration, database and log in `folder`.

    `extra` are further lines of mosquitto.conf, put after the listener's (so `allow_anonymous false`, `acl_file` or
    `password_file` there replace `anonymous`); `listener` are further lines of the first listener, for TLS.
    With `persistence` the database is written at `stop` and every `autosave_seconds`; `save_on_change`: at each change,
    slowly.
    `config` is a whole configuration, which must have its first listener on `port` and name the user, instead of all
    these.
    """

    def __init__(
        self,
        folder: Path,
        *,
        extra: str = "",
        listener: str = "",
        anonymous: bool = True,
        persistence: bool = False,
        save_on_change: bool = False,
        autosave_seconds: int = 1,
        max_inflight_messages: int = 100,
        max_queued_messages: int = 100_000,
        port: int | None = None,
        config: Path | None = None,
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._extra = extra
        self._listener = listener
        self._anonymous = anonymous
        self._persistence = persistence
        self._save_on_change = save_on_change
        self._autosave_seconds = autosave_seconds
        self._max_inflight_messages = max_inflight_messages
        self._max_queued_messages = max_queued_messages
        self._whole = config
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The plain listener, as `LC_MQTT_URL` takes it."""
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """All that the broker logged so far."""
        return (self.folder / "mosquitto.log").read_text(encoding="utf-8", errors="replace")

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start and wait until the port answers."""
        program = find_mosquitto()
        if program is None:
            raise FileNotFoundError("mosquitto is not installed")
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "mosquitto.conf"
        config.write_text(self._config(), encoding="utf-8")
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while not answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"mosquitto did not start:\n{self.log}")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End with SIGTERM: the database is written, clients are told."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End with SIGKILL: what was not in the database is lost."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start on the same port."""
        self.stop()
        self.start()

    def save(self) -> None:
        """Have the database written now, and wait for it; it is replaced in one step."""
        database = self.folder / "mosquitto.db"
        before = database.stat().st_ino if database.exists() else None
        if self._process is not None:
            self._process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 10
        while not database.exists() or database.stat().st_ino == before:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the database was not written:\n{self.log}")
            time.sleep(0.01)

    def reload(self) -> None:
        """Have users and rights read again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def pause(self) -> None:
        """Stop scheduling the process: the port stays open and nothing answers, like a dead link."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        process.wait(10)

    def _config(self) -> str:
        if self._whole is not None:
            return self._whole.read_text(encoding="utf-8")
        user = f"user {getpass.getuser()}"  # root would drop to a user who cannot write to the test's folder
        lines = [
            f"listener {self.port} 127.0.0.1",
            self._listener,
            f"allow_anonymous {'true' if self._anonymous else 'false'}",
            "set_tcp_nodelay true",
            f"max_inflight_messages {self._max_inflight_messages}",
            f"max_queued_messages {self._max_queued_messages}",
            user,
            "log_dest stderr",
            f"persistence {'true' if self._persistence else 'false'}",
        ]
        if self._persistence:
            lines += [f"persistence_location {self.folder}/", f"autosave_interval {self._autosave_seconds}"]
            lines += [f"autosave_on_changes {'true' if self._save_on_change else 'false'}"]
        return "\n".join([*lines, self._extra, ""])
