"""The hash chain over a job's history, checked event by event, and the small file that says how far it was checked.

The hash of an event is SHA-256 over five parts: the hash before it (hex, empty at first), the stream, the version
(decimal), the event's name and its stored bytes, each preceded by its length as 8 bytes, big-endian.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

STREAM = "{}/lifelonglearningjob/{}"


class BrokenChainError(Exception):
    """A history is not what it claims to be, or not the one that was seen before."""


def hash_of(previous: str, stream: str, version: int, name: str, stored: bytes) -> str:
    """The hash of an event, lower-case hex."""
    digest = hashlib.sha256()
    for part in (previous.encode(), stream.encode(), str(version).encode(), name.encode(), stored):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def name_of(event: dict[str, Any]) -> str:
    """The stored name of a CloudEvent: `Ticked` of the type `io.sedna.lc.Ticked.v1`."""
    return str(event["type"]).split(".")[-2]


class Checked:
    """Version and hash up to which a job's history was checked; `path` remembers them over a restart."""

    def __init__(self, path: Path, namespace: str, name: str) -> None:
        """Go on from what the file says; BrokenChainError if it speaks of another job or cannot be read."""
        self.stream = STREAM.format(namespace, name)
        self.version = 0
        self.hash = ""
        self._path = path
        if path.exists():
            try:
                kept = json.loads(path.read_text())
                of, self.version, self.hash = str(kept["stream"]), int(kept["version"]), str(kept["hash"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise BrokenChainError(f"{path} cannot be read ({error}): remove it to check from version 1") from None
            if of != self.stream:
                raise BrokenChainError(f"{path} is of {of}, not of {self.stream}: name another file by --state")

    def follows(self, event: dict[str, Any], stored: bytes) -> bool:
        """Whether this is the next event, and linked to the one before it."""
        version = self.version + 1
        hash_ = hash_of(self.hash, self.stream, version, name_of(event), stored)
        return bool(event["sequence"] == version and event["prevhash"] == self.hash and event["hash"] == hash_)

    def take(self, event: dict[str, Any]) -> None:
        """Go on by an event that follows."""
        self.version, self.hash = event["sequence"], event["hash"]

    def save(self) -> None:
        """Write the file anew, whole or not at all."""
        new = self._path.with_name(self._path.name + ".new")
        with new.open("w") as file:
            json.dump({"stream": self.stream, "version": self.version, "hash": self.hash}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
