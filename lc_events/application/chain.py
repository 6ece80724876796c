"""The hash chain over a stream's stored bytes (CONTRACT section 6): what is on disk can be checked by anyone."""

from __future__ import annotations

import hashlib
import struct

__all__ = ["EMPTY", "event_id", "next_hash"]

_LENGTH = struct.Struct(">Q").pack
EMPTY = ""
"""The previous hash of a stream's first event."""


def next_hash(previous: str, stream: str, version: int, name: str, state: bytes) -> str:
    """SHA-256 (lower-case hex) over the previous hash, stream, version, stored name and stored bytes.

    Each part is preceded by its length as 8 bytes big-endian, so that no two different histories run together.
    """
    parts = (previous.encode(), stream.encode(), str(version).encode(), name.encode(), state)
    return hashlib.sha256(b"".join([piece for part in parts for piece in (_LENGTH(len(part)), part)])).hexdigest()


def event_id(node: str, stream: str, version: int, hash_: str) -> str:
    """`NODE/STREAM/VERSION-HASH12`: the id of an event and of the report that it causes."""
    return f"{node}/{stream}/{version}-{hash_[:12]}"
