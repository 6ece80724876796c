"""Datasets that are objects on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from lc_events.datasets.source import ReplacedError, SourceStat, UnreadableError
from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["ObjectSource", "PinnedObject"]

AHEAD_BYTES = 8 << 20
_BLOCK_BYTES = 1 << 20
"""Reads of this size and more, one after the other, are a reading of the whole: then more is asked for at once."""


class PinnedObject(Protocol):
    """One object as it was when it was looked at, whatever is put under its name meanwhile."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    @property
    def stamp(self) -> str:
        """Its ETag, and version if it has one."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes; `StorageError` with code `changed` once the name leads to another object."""
        ...


class ObjectSource:
    """A dataset that is an object: a look is a HEAD, and only what is asked for is fetched, all of one object.

    `look_at` is that HEAD; it may raise `StorageError`. One call at a time.
    """

    def __init__(self, look_at: Callable[[], PinnedObject]) -> None:
        self._look_at = look_at
        self._fresh: PinnedObject | None = None
        self._window = _Window("", 0, b"")

    def stat(self) -> SourceStat:
        """See `Source.stat`."""
        self._fresh = self._looked_at()
        return _stat(self._fresh)

    def open(self) -> OpenObjectSource:
        """See `Source.open`; what `stat` has just seen, if it was not opened before."""
        pinned, self._fresh = self._fresh or self._looked_at(), None
        if self._window.stamp != pinned.stamp:
            self._window = _Window(pinned.stamp, 0, b"")
        return OpenObjectSource(pinned, self._window)

    def _looked_at(self) -> PinnedObject:
        try:
            return self._look_at()
        except StorageError as error:
            raise _unreadable(error) from error


class _Window:
    """What was fetched last of an object, a part of it perhaps for later; outlives a look that stops half-way."""

    def __init__(self, stamp: str, offset: int, data: bytes) -> None:
        self.stamp = stamp
        self.offset = offset
        self.data = data
        self.next = -1

    def take(self, offset: int, length: int) -> bytes | None:
        """The bytes of a range, if all of them are here; they are let go of with the last one."""
        begin = offset - self.offset
        if not 0 <= begin <= begin + length <= len(self.data):
            return None
        found = self.data[begin : begin + length]
        if begin + length == len(self.data):
            self.data = b""
        return found


class OpenObjectSource:
    """See `OpenSource`: one object, whatever is put under its name meanwhile."""

    def __init__(self, pinned: PinnedObject, window: _Window) -> None:
        self._pinned = pinned
        self._window = window
        self._small: dict[tuple[int, int], bytes] = {}

    def stat(self) -> SourceStat:
        """See `OpenSource.stat`; an object never changes."""
        return _stat(self._pinned)

    def read(self, offset: int, length: int) -> bytes:
        """See `OpenSource.read`; raises `ReplacedError` once the name leads to another object."""
        length = min(length, self._pinned.size - offset)
        if length <= 0:
            return b""
        try:
            return self._read_block(offset, length) if length >= _BLOCK_BYTES else self._read_small(offset, length)
        except StorageError as error:
            raise _unreadable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._small.clear()

    def _read_small(self, offset: int, length: int) -> bytes:
        """The edges of the counted part are compared twice in a look, and fetched once."""
        window = self._window
        found = window.take(offset, length) or self._small.get((offset, length))
        if found is None:
            found = self._small[offset, length] = self._pinned.read(offset, length)
        return found

    def _read_block(self, offset: int, length: int) -> bytes:
        window = self._window
        found = window.take(offset, length)
        if found is None:
            ahead = AHEAD_BYTES if window.next == offset else length
            window.data = self._pinned.read(offset, min(max(ahead, length), self._pinned.size - offset))
            window.offset = offset
            found = window.take(offset, length) or b""
        window.next = offset + length
        return found


def _stat(pinned: PinnedObject) -> SourceStat:
    # An object appears whole, so it never has to stand still first.
    return SourceStat(size=pinned.size, identity="", stamp=pinned.stamp, changed_ns=None)


def _unreadable(error: StorageError) -> UnreadableError:
    if error.code == "changed":
        return ReplacedError(str(error))
    return UnreadableError(str(error), code=error.code, missing=error.missing)
