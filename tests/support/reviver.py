"""Starts a controller again whenever it died."""

from __future__ import annotations

import threading
from typing import Self

from support.local_controller import ControllerProcess


class Reviver:
    """While it is entered, a controller that ended is started again, without `LC_TEST_CRASH`; `deaths` counts."""

    def __init__(self, lc: ControllerProcess) -> None:
        self.deaths = 0
        self._lc = lc
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.01):
            if not self._lc.is_running:
                self.deaths += 1
                self._lc.start(wait=False, test_crash=None)
