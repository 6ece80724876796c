"""A device on the edge: told of a newly deployed model by MQTT, it checks the file's hash and uses it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lc_events.errors import LcError
from lc_events.messages.json import loads_object

__all__ = ["Device", "Reading"]


@dataclass(frozen=True)
class Reading:
    """What the device found with the model of a round."""

    round: int
    sha256: str
    sentence: str


class Device:
    """Loads each announced model and says how well it reads images that were never in the dataset."""

    def __init__(self, model_file: Callable[[str], Path], infer: Path) -> None:
        self._model_file = model_file
        self._infer = infer
        self._in_use: object = None

    def announced(self, payload: bytes) -> Reading | None:
        """Use the model of an announcement; LcError if it cannot be used.

        None if it is in use already (retained announcements come again), or if the file is another one by now: then
        another announcement comes.
        """
        model = loads_object(payload)
        if model["sha256"] == self._in_use:
            return None
        path = self._model_file(str(model["url"]))
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        if sha256 != model["sha256"]:
            return None
        done = subprocess.run(  # noqa: S603 - our own example
            [sys.executable, str(self._infer), "--once", str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LcError(f"the device cannot use the model: {done.stderr.strip()[-400:]}")
        self._in_use = sha256
        round_ = model["round"]
        return Reading(round_ if isinstance(round_, int) else 0, sha256, done.stdout.strip())
