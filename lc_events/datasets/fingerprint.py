"""What the counted part of a file looked like, so that a change of it can be found."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lc_events.datasets.mark import Mark
    from lc_events.datasets.source import OpenSource

__all__ = ["Digests", "Fingerprint", "edges_match"]

BLOCK_BYTES = 1 << 20
EDGE_BYTES = 4096
# Against accidents, not against an enemy: who may write the file may write what he likes.
_SIZE = 8


@dataclass(frozen=True, slots=True)
class Digests:
    """Of the first `offset` bytes of a file; see `Mark`."""

    offset: int
    head: str
    tail: str
    chain: str
    rest: str


class Fingerprint:
    """Digests of the counted part of a file, kept while it is read forward, so that a change of it can be found.

    Whole blocks are folded into one chained digest, so a mark stays small however large the file, and going on after
    a restart reads no more than one block again.
    """

    def __init__(self) -> None:
        self._position = 0
        self._head = b""
        self._recent = b""
        self._chain = b""
        self._block = blake2b(digest_size=_SIZE)
        self._counted = (0, b"", b"", self._block.copy())

    @classmethod
    def resume(cls, file: OpenSource, mark: Mark) -> Fingerprint:
        """Take up a mark's digests, reading only the last block of its part; `matches` says if the file is the same."""
        start = mark.offset - mark.offset % BLOCK_BYTES
        found = cls()
        found._position = start
        found._chain = bytes.fromhex(mark.chain)
        found._head = file.read(0, min(EDGE_BYTES, start))
        found._recent = file.read(max(0, start - EDGE_BYTES), min(EDGE_BYTES, start))
        found.update(file.read(start, mark.offset - start), mark.offset)
        return found

    @classmethod
    def of(cls, file: OpenSource, size: int) -> Fingerprint:
        """Read the first `size` bytes of a file."""
        found = cls()
        while found._position < size and (
            block := file.read(found._position, min(BLOCK_BYTES, size - found._position))
        ):
            found.update(block, found._position + len(block))
        return found

    def update(self, block: bytes, counted: int) -> None:
        """Add the bytes that follow; what lies before the offset `counted` is counted now."""
        if counted > self._counted[0]:
            cut = counted - self._position
            self._add(block[:cut])
            self._counted = (self._position, self._recent, self._chain, self._block.copy())
            block = block[cut:]
        self._add(block)

    def digests(self) -> Digests:
        """Digests of the counted part."""
        offset, tail, chain, block = self._counted
        return Digests(offset, _hex(self._head[:offset]), _hex(tail), chain.hex(), block.hexdigest())

    def matches(self, mark: Mark) -> bool:
        """Whether the counted part is the one that a mark describes; where nothing was counted, it always is."""
        return mark.offset == 0 or self.digests() == Digests(mark.offset, mark.head, mark.tail, mark.chain, mark.rest)

    def continues(self, file: OpenSource) -> bool:
        """Whether the bytes read last still stand before the position."""
        return file.read(self._position - len(self._recent), len(self._recent)) == self._recent

    def _add(self, data: bytes) -> None:
        if len(self._head) < EDGE_BYTES:
            self._head += data[: EDGE_BYTES - len(self._head)]
        self._recent = data[-EDGE_BYTES:] if len(data) >= EDGE_BYTES else (self._recent + data)[-EDGE_BYTES:]
        while data:
            room = BLOCK_BYTES - self._position % BLOCK_BYTES
            self._block.update(data[:room])
            self._position += len(data[:room])
            data = data[room:]
            if self._position % BLOCK_BYTES == 0:
                self._chain = blake2b(self._chain + self._block.digest(), digest_size=_SIZE).digest()
                self._block = blake2b(digest_size=_SIZE)


def edges_match(file: OpenSource, mark: Mark) -> bool:
    """Whether the first and the last bytes of the counted part are what they were: enough for a file that grew."""
    size = min(EDGE_BYTES, mark.offset)
    if size == 0:
        return True
    return _hex(file.read(0, size)) == mark.head and _hex(file.read(mark.offset - size, size)) == mark.tail


def _hex(data: bytes) -> str:
    return blake2b(data, digest_size=_SIZE).hexdigest()
