"""What was refused, as it came, in files of mode 0600 outside the store: bounded, the oldest go first."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from lc_events.errors import NotFoundError
from lc_events.faults import reach
from lc_events.files import sync_folder

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
        self._kept: _Kept | None = None

    def put(self, *, time: str, topic: str, code: str, error: str, payload: bytes, is_synced: bool = True) -> str:
        """Keep a refused message, `is_synced` past a power cut, and return its id. OSError if it cannot be kept."""
        tag = hashlib.sha256(topic.encode(errors="replace")).hexdigest()[:8]
        entry_id = f"{time.translate(str.maketrans('', '', '-:.TZ'))}-{tag}-{secrets.token_hex(4)}"
        record = {"id": entry_id, "time": time, "topic": topic, "code": code, "error": error, "size": len(payload)}
        data = orjson.dumps({**record, "payload": base64.b64encode(payload[:_LARGEST]).decode()})
        with self._lock:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._folder / f"{entry_id}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if is_synced:
                    file.flush()
                    os.fsync(file.fileno())
            if is_synced:
                sync_folder(self._folder)
            reach("quarantine-written")
            self._make_room(entry_id, len(data))
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

    def _make_room(self, newest: str, size: int) -> None:
        """Drop the oldest of this topic beyond its share, and the oldest of all beyond the number and the bytes."""
        if self._kept is None:
            self._kept = _Kept()
            for path in self._paths():
                self._kept.add(path.stem, _size(path))
        else:
            self._kept.add(newest, size)
        gone = sum(self._is_removed(entry_id) for entry_id in self._kept.excess(newest))
        if gone:
            (self._folder / _DROPPED).write_text(str(self.dropped() + gone), encoding="ascii")

    def _is_removed(self, entry_id: str) -> bool:
        """Whether it still was there: another process may have dropped it on purpose."""
        try:
            (self._folder / f"{entry_id}.json").unlink()
        except FileNotFoundError:
            return False
        return True

    def counts(self) -> Counter[str]:
        """How many entries there are of each code."""
        return Counter(entry.code for entry in self.entries())


class _Kept:
    """Which entries there are, the oldest first, and their bytes."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._of_tag: dict[str, deque[str]] = {}
        self._total = 0

    def add(self, entry_id: str, size: int) -> None:
        self._sizes[entry_id] = size
        self._of_tag.setdefault(_tag(entry_id), deque()).append(entry_id)
        self._total += size

    def excess(self, newest: str) -> Iterator[str]:
        """Take out what must go now that `newest` is there."""
        of_topic = self._of_tag[_tag(newest)]
        while len(of_topic) > _PER_TOPIC:
            yield self._take(of_topic[0])
        while self._sizes and (len(self._sizes) > _IN_ALL or self._total > _BYTES):
            yield self._take(next(iter(self._sizes)))

    def _take(self, entry_id: str) -> str:
        self._total -= self._sizes.pop(entry_id)
        tag = _tag(entry_id)
        self._of_tag[tag].remove(entry_id)
        if not self._of_tag[tag]:
            del self._of_tag[tag]
        return entry_id


def _tag(entry_id: str) -> str:
    return "".join(entry_id.split("-")[1:2])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
