"""What was refused, as it came, in files of mode 0600 outside the store: bounded, the oldest go first."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from lc_events.errors import NotFoundError
from lc_events.faults import reach
from lc_events.storage.local import sync_folder

__all__ = ["Quarantine", "Refused"]

_PER_TOPIC = 100
_IN_ALL = 2000
_BYTES = 64 * 1024 * 1024
_LARGEST = 4 * 1024 * 1024
_DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused message: where and when it came, its bytes, and why it was not taken.

    Of one that would fill the quarantine alone only the beginning is kept; `size` is what it had.
    """

    id: str
    time: str
    topic: str
    code: str
    error: str
    payload: bytes
    size: int

    @property
    def is_whole(self) -> bool:
        """Whether all of it was kept."""
        return len(self.payload) == self.size


class Quarantine:
    """A folder of refused messages, one JSON file each, named by time, a tag of the topic and a random part."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._sizes: dict[str, int] | None = None

    def put(self, *, time: str, topic: str, code: str, error: str, payload: bytes) -> str:
        """Keep a refused message and return its id. OSError if it cannot be written."""
        tag = hashlib.sha256(topic.encode(errors="replace")).hexdigest()[:8]
        entry_id = f"{time.translate(str.maketrans('', '', '-:.TZ'))}-{tag}-{secrets.token_hex(4)}"
        record = {"id": entry_id, "time": time, "topic": topic, "code": code, "error": error, "size": len(payload)}
        data = orjson.dumps({**record, "payload": base64.b64encode(payload[:_LARGEST]).decode()})
        with self._lock:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._folder / f"{entry_id}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._folder)
            reach("quarantine-written")
            self._make_room(entry_id, tag)
        return entry_id

    def dropped(self) -> int:
        """How many entries had to make room so far."""
        try:
            return int((self._folder / _DROPPED).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def entries(self) -> Iterator[Refused]:
        """All that is kept, the oldest first; a file that is no entry is passed over."""
        for path in self._paths():
            try:
                yield self._read(path)
            except (OSError, ValueError, KeyError):
                continue

    def get(self, entry_id: str) -> Refused:
        """One entry; NotFoundError if there is none of that id."""
        path = self._path(entry_id)
        try:
            return self._read(path)
        except (OSError, ValueError, KeyError):
            raise NotFoundError(f"quarantine has no entry {entry_id[:80]!r}") from None

    def drop(self, entry_id: str) -> None:
        """Throw an entry away; NotFoundError if there is none of that id."""
        try:
            self._path(entry_id).unlink()
        except OSError:
            raise NotFoundError(f"quarantine has no entry {entry_id[:80]!r}") from None

    def _path(self, entry_id: str) -> Path:
        if not entry_id.replace("-", "").isalnum():
            raise NotFoundError(f"quarantine has no entry {entry_id[:80]!r}")
        return self._folder / f"{entry_id}.json"

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _read(self, path: Path) -> Refused:
        record = orjson.loads(path.read_bytes())
        payload = base64.b64decode(record["payload"])
        size = int(record.get("size", len(payload)))
        return Refused(record["id"], record["time"], record["topic"], record["code"], record["error"], payload, size)

    def _make_room(self, newest: str, tag: str) -> None:
        """Drop the oldest of this topic beyond its share, and the oldest of all beyond the number and the bytes."""
        sizes = self._known_sizes()
        sizes[newest] = self._size(newest)
        of_topic = [entry_id for entry_id in sizes if entry_id.split("-")[1:2] == [tag]]
        excess = set(of_topic[: max(0, len(of_topic) - _PER_TOPIC)])
        excess.update(list(sizes)[: max(0, len(sizes) - _IN_ALL)])
        total, gone = sum(sizes.values()), 0
        for entry_id in list(sizes):
            if entry_id in excess or total > _BYTES:
                (self._folder / f"{entry_id}.json").unlink(missing_ok=True)
                total -= sizes.pop(entry_id)
                gone += 1
        if gone:
            (self._folder / _DROPPED).write_text(str(self.dropped() + gone), encoding="ascii")

    def _known_sizes(self) -> dict[str, int]:
        """Entries and their bytes, read once: only the controller adds any."""
        if self._sizes is None:
            self._sizes = {path.stem: self._size(path.stem) for path in self._paths()}
        return self._sizes

    def _size(self, entry_id: str) -> int:
        try:
            return (self._folder / f"{entry_id}.json").stat().st_size
        except FileNotFoundError:
            return 0

    def counts(self) -> Counter[str]:
        """How many entries there are of each code."""
        return Counter(entry.code for entry in self.entries())
