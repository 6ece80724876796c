"""The programs of the demo as processes of their own, as they run on a node; none is left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from lc_events.errors import LcError

__all__ = ["Programs", "end_with_parent"]

_GRACE = 15.0


class Programs:
    """`lc-events` commands started with their output in files of `folder`; ended in the reverse order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, command: str, environment: Mapping[str, str]) -> None:
        """Start `lc-events COMMAND`; a Ctrl-C in the terminal reaches only us, who end them in order."""
        with self.log(command).open("ab") as log:
            self._running[command] = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "lc_events", command],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - one system call, before any thread of ours
            )

    def log(self, command: str) -> Path:
        """Where a program's output goes."""
        return self._folder / f"{command}.log"

    def check(self) -> None:
        """LcError, with the last lines of its output, if one has ended by itself."""
        for command, process in self._running.items():
            if process.poll() is not None:
                lines = self.log(command).read_text(errors="replace").splitlines()[-5:]
                raise LcError(f"{command} ended with {process.returncode}:\n  " + "\n  ".join(lines))

    def stop(self) -> None:
        """Ask them to end, one after the other; kill with all its children what does not. A second Ctrl-C waits."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for process in reversed(self._running.values()):
            process.terminate()
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._running.clear()


def end_with_parent() -> None:
    """In the child: ask the kernel for a SIGTERM when the demo itself is killed (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
