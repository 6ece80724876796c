"""A program of ours or an example as a process of its own: what it said so far, and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from support.waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "examples"


class Ended(NamedTuple):
    """Exit code (negative: the signal), standard output, standard error."""

    code: int
    out: str
    err: str


class Program:
    """A Python program started in `folder`, which also gets its output in two files; ended with `with`.

    Of the environment it sees only what is given here and PATH.
    """

    def __init__(self, folder: Path, *command: object, environment: Mapping[str, object] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, *map(str, command)],
                cwd=folder,
                env={"PATH": os.environ["PATH"], **{name: str(value) for name, value in (environment or {}).items()}},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def out(self) -> str:
        """What it said on standard output so far."""
        return self._out.read_text(encoding="utf-8", errors="replace")

    @property
    def err(self) -> str:
        """What it said on standard error so far."""
        return self._err.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def says(self, text: str, times: int = 1) -> str:
        """Wait until `text` stands in its standard output that often, and return all of it."""
        try:
            eventually(lambda: self.out.count(text) >= times or not self.is_running, what=text)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.out}{self.err}") from None
        assert self.out.count(text) >= times, f"it ended without saying {text!r}:\n{self.out}{self.err}"
        return self.out

    def interrupt(self) -> Ended:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self, timeout: float = 30.0) -> Ended:
        """Wait until it ended by itself."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"it does not end:\n{self.out}{self.err}") from None
        return Ended(code, self.out, self.err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running:
            self._process.kill()
        self._process.wait()
