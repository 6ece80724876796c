"""The chain of a stream, link by link, and heads of it that were seen elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lc_events.application.broken import BrokenError
from lc_events.application.chain import EMPTY, next_hash
from lc_events.application.recorder import Head, StoredRow

__all__ = ["linked"]


def linked(stream: str, rows: Iterable[StoredRow], heads: Iterable[Head] = ()) -> Iterator[StoredRow]:
    """The rows of a stream as long as each is the next version and its link holds.

    `heads` are versions and hashes that were seen outside of the store. Raises BrokenError at the first row that is not
    what was written, or at the end if a head lies beyond it.
    """
    seen = {head.version: head.hash for head in heads}
    version, hash_ = 0, EMPTY
    for row in rows:
        expected = version + 1
        if row.version != expected:
            raise BrokenError(stream, expected, f"it is missing: after version {version} comes version {row.version}")
        version, hash_ = expected, next_hash(hash_, stream, row.version, row.name, row.state)
        if row.hash != hash_:
            raise BrokenError(stream, version, _mislinked(row))
        if seen and seen.get(version, hash_) != hash_:
            raise BrokenError(stream, version, f"its hash is {hash_}, but the head seen elsewhere says {seen[version]}")
        yield row
    if seen and max(seen) > version:
        raise BrokenError(stream, version + 1, f"it is missing: the head seen elsewhere is version {max(seen)}")


def _mislinked(row: StoredRow) -> str:
    if not row.hash:
        return "its link of the chain is missing"
    return f"its stored name {row.name[:80]!r} and bytes do not give its hash: they, or those before, were changed"
