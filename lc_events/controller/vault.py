"""Secrets of resources, in one file of mode 0600 in the state folder, and nowhere else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import orjson

from lc_events.errors import StoreError
from lc_events.messages.secrets import Secrets

__all__ = ["Vault"]


class Vault:
    """The newest secrets that GM sent for each resource; dropped with the resource."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._secrets: dict[str, dict[str, str]] = orjson.loads(path.read_bytes()) if path.exists() else {}

    def get(self, stream: str) -> Secrets:
        """The secrets of a resource by their place in it."""
        with self._lock:
            return dict(self._secrets.get(stream, {}))

    def put(self, stream: str, secrets: Secrets) -> None:
        """Keep what GM sent last, which may be nothing. StoreError if the file cannot be written."""
        with self._lock:
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

    def drop(self, stream: str) -> None:
        """Forget a resource's secrets."""
        self.put(stream, {})

    def _write(self, changed: dict[str, dict[str, str]]) -> None:
        temporary = self._path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(changed))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
