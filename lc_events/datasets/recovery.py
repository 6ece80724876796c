"""Samples that the spool lost, read again from the file that they came from."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from lc_events.datasets.fingerprint import Fingerprint
from lc_events.datasets.mark import Mark
from lc_events.datasets.reading import Reading
from lc_events.datasets.source import SourceStat
from lc_events.datasets.stillness import same_state
from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lc_events.datasets.mark import Batch
    from lc_events.datasets.source import OpenSource
    from lc_events.datasets.spool import Spool

__all__ = ["recover"]


def recover(spool: Spool, file: OpenSource, batches: Iterable[Batch], *, mark: Mark, format_name: str) -> None:
    """Read spooled batches of a file again into the spool, under the numbers that they had there.

    The file must hold, up to its `mark`, what it held when they were counted, and still when they have been read.
    Raises `StorageError` with code `changed` if it does not.
    """
    if not _is_same(file, mark):
        raise _changed()
    for first, following in _runs(batches):
        with spool.restoring(first) as part:
            for last, batch in following:
                _read_again(part, file, batch, mark, format_name)
                if part.length != last:
                    raise _changed()
            if not _is_same(file, mark):  # before the restored files are put in place
                raise _changed()


def _runs(batches: Iterable[Batch]) -> list[tuple[int, list[tuple[int, Batch]]]]:
    """Batches that follow each other in the spool, by the number that the first of them begins with."""
    runs: list[tuple[int, list[tuple[int, Batch]]]] = []
    end = None
    spooled = ((*each.spooled, each) for each in batches if each.spooled is not None)
    for first, last, batch in sorted(spooled, key=itemgetter(0, 1)):
        if first != end:
            runs.append((first, []))
        runs[-1][1].append((last, batch))
        end = last
    return runs


def _is_same(file: OpenSource, mark: Mark) -> bool:
    counted = SourceStat(mark.size, mark.identity, mark.stamp, None)
    return same_state(file.stat(), counted) or Fingerprint.of(file, mark.offset).matches(mark)


def _read_again(part: Spool, file: OpenSource, batch: Batch, mark: Mark, format_name: str) -> None:
    begin, end = batch.bytes
    reading = Reading(Mark(rows=batch.rows[0], offset=begin), Fingerprint(), format_name=format_name, spool=part)
    reading.advance_again(file, end, mark.splits)


def _changed() -> StorageError:
    return StorageError("it is not the file that was counted any more", code="changed")
