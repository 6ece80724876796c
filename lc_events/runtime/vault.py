"""Secrets of resources, in one file of mode 0600 in the state folder, and nowhere else."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import orjson

from lc_events.errors import StoreError
from lc_events.faults import reach
from lc_events.messages.secrets import MASK, Secrets

__all__ = ["SECRETS_FILE", "Vault"]

SECRETS_FILE = "secrets.json"
"""Its name in a state folder."""

_SHORTEST = 6


class Vault:
    """The newest secrets that GM sent for each resource; dropped with the resource."""

    def __init__(self, path: Path) -> None:
        """StoreError if there is a file that cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._secrets = _read(path)
        self._puts: Counter[str] = Counter()

    def get(self, stream: str) -> Secrets:
        """The secrets of a resource by their place in it."""
        with self._lock:
            return dict(self._secrets.get(stream, {}))

    def masked(self, text: str) -> str:
        """A text without the secrets that are kept; what is too short to be one is left."""
        for secrets in list(self._secrets.values()):
            for secret in secrets.values():
                if len(secret) >= _SHORTEST and secret in text:
                    text = text.replace(secret, MASK)
        return text

    def put(self, stream: str, secrets: Secrets) -> None:
        """Keep what GM sent last, which may be nothing. StoreError if the file cannot be written."""
        with self._lock:
            self._puts[stream] += 1
            if self._secrets.get(stream, {}) == secrets:
                return
            changed = {name: kept for name, kept in self._secrets.items() if name != stream}
            if secrets:
                changed[stream] = dict(secrets)
            try:
                self._write(changed)
            except OSError as error:
                raise StoreError(f"{self._path} could not be written: {error}") from error
            self._secrets = changed

    def puts(self, stream: str) -> int:
        """How often secrets of a resource were put."""
        with self._lock:
            return self._puts[stream]

    def drop(self, stream: str, puts: int | None = None) -> None:
        """Forget a resource's secrets; with `puts`, only if none were put since there were so many."""
        if puts in (None, self.puts(stream)):
            self.put(stream, {})

    def keep_only(self, streams: Collection[str]) -> None:
        """Forget all but these resources; a stop between a delete and its `drop` leaves some behind."""
        with self._lock:
            gone = self._secrets.keys() - set(streams)
        for stream in gone:
            self.drop(stream)

    def _write(self, changed: dict[str, dict[str, str]]) -> None:
        temporary = self._path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(changed))
            file.flush()
            os.fsync(file.fileno())
        reach("secrets-written")
        temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        reach("secrets-replaced")


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}; move it away and have GM send its resources again") from None
    return {str(stream): dict(secrets) for stream, secrets in found.items()} if isinstance(found, dict) else {}
