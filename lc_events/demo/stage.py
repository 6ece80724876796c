"""Where the demo speaks: a live line on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.text import Text

__all__ = ["Stage"]


class Stage:
    """Lines with the seconds since the start; on a terminal also what is waited for."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._status = self._console.status("") if self._console.is_terminal else None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, line: str, style: str = "") -> None:
        """One line; `line` is text, not markup."""
        seconds = time.monotonic() - self._began
        self._console.print(Text.assemble((f"{seconds:6.1f} s  ", "dim"), (line, style)))

    def plain(self, line: str) -> None:
        """One line without the time."""
        self._console.print(Text(line))

    def wait_for(self, what: str) -> None:
        """What is waited for now."""
        if self._status is not None:
            self._status.update(Text(what))
