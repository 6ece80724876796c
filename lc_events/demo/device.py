"""A device on the edge: told of a newly deployed model by MQTT, it checks the file's hash and uses it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
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


_KEPT = "; evaluation kept the model of before"


class Device:
    """Loads each announced model and says how well it reads images that were never in the dataset."""

    def __init__(self, model_file: Callable[[str], Path], infer: Path) -> None:
        self._model_file = model_file
        self._infer = infer
        self._in_use: Reading | None = None

    def announced(self, payload: bytes) -> Reading | None:
        """Use the model of an announcement; LcError if it cannot be used.

        None if nothing is new (retained announcements come again), or if the file is another one by now: then another
        announcement comes. A round whose evaluation kept the model of the round before announces the same file.
        """
        model = loads_object(payload)
        round_ = model["round"] if isinstance(model["round"], int) else 0
        if self._in_use is not None and model["sha256"] == self._in_use.sha256:
            kept, self._in_use = self._in_use, replace(self._in_use, round=round_)
            said = kept.sentence.removesuffix(_KEPT) + _KEPT
            return None if kept.round == round_ else replace(self._in_use, sentence=said)
        path = self._model_file(str(model["url"]))
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        if sha256 != model["sha256"]:
            return None
        done = subprocess.run(  # noqa: S603 - our own example
            [sys.executable, str(self._infer), "--once", str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LcError(f"the device cannot use the model: {done.stderr.strip()[-400:]}")
        self._in_use = Reading(round_, sha256, done.stdout.strip())
        return self._in_use
