"""Reading a file forward from where it has been counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_events.datasets.fingerprint import Fingerprint
from lc_events.datasets.header import header_text
from lc_events.datasets.mark import Mark
from lc_events.datasets.records import Split, splitter_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lc_events.datasets.source import OpenSource, SourceStat, UnreadableError
    from lc_events.datasets.spool import Spool

__all__ = ["Reading"]

BLOCK_BYTES = 1 << 20
MAX_SPLITS = 64


class Reading:
    """Reads a file forward from a mark, in bounded memory: splits, spools and fingerprints what comes.

    `spool` is None where records are only counted. Bytes of a record that has not ended yet go to the spool too, so
    that a line may be longer than memory; the spool's `cut` drops them.
    """

    def __init__(self, mark: Mark, fingerprint: Fingerprint, *, format_name: str, spool: Spool | None) -> None:
        self._fingerprint = fingerprint
        self._spool = spool
        self._splitter = splitter_for(
            format_name, offset=mark.offset, after_partial=mark.after_partial, keep=spool is not None
        )
        self._header = mark.header
        self._splits = mark.splits
        self._split_at = mark.offset if mark.after_partial else None
        self._counted = mark.offset
        self.rows = mark.rows
        self.first_record_at: int | None = None

    @property
    def keeps(self) -> bool:
        """Whether records are spooled."""
        return self._spool is not None

    @property
    def position(self) -> int:
        """How far the file has been read."""
        return self._splitter.position

    @property
    def header(self) -> str | None:
        """Csv header."""
        if self._header is None and self._splitter.header is not None:
            self._header = header_text(self._splitter.header)
        return self._header

    @property
    def error(self) -> UnreadableError | None:
        """Why nothing after the records read so far can be split."""
        return self._splitter.error

    @property
    def has_partial(self) -> bool:
        """Whether the file ends within a record, as far as it has been read."""
        return self._splitter.has_partial

    def open_quote(self) -> int | None:
        """Offset of the quote of a field that has not ended."""
        return self._splitter.open_quote()

    def can_finish(self) -> bool:
        """Whether the partial record may be counted as it is; a file in which that happened too often waits."""
        return len(self._splits) < MAX_SPLITS and self._splitter.can_finish()

    def advance(self, file: OpenSource, until: int, *, stop: Callable[[], bool]) -> None:
        """Read up to the offset `until`, the file's end, an `error`, or a block after which `stop` says so."""
        while self.position < until and self.error is None and not stop():
            block = file.read(self.position, min(BLOCK_BYTES, until - self.position))
            if not block:
                return
            self._take(self._splitter.feed(block))
            self._fingerprint.update(block, self._counted)

    def advance_again(self, file: OpenSource, until: int, splits: Iterable[int]) -> None:
        """Read what was counted before, up to the offset `until`; there and at `splits` a record may end unfinished."""
        for at in [*(split for split in splits if self.position < split < until), until]:
            self.advance(file, at, stop=lambda: False)
            if self.has_partial:
                self.finish()

    def finish(self) -> None:
        """Count the partial last line for a record."""
        self._take(self._splitter.finish())
        self._split_at = self._counted
        self._fingerprint.update(b"", self._counted)

    def begin_batch(self) -> None:
        """What comes from now on is a batch of its own."""
        self.first_record_at = None

    def mark(self, stat: SourceStat) -> Mark:
        """Mark at the last counted record, in a file of this state."""
        digests = self._fingerprint.digests()
        return Mark(
            rows=self.rows,
            offset=self._counted,
            header=self.header,
            after_partial=self._split_at is not None,
            splits=self._splits,
            size=stat.size,
            identity=stat.identity,
            stamp=stat.stamp,
            head=digests.head,
            tail=digests.tail,
            chain=digests.chain,
            rest=digests.rest,
        )

    def continues(self, file: OpenSource) -> bool:
        """Whether the bytes read last, counted or not, still stand in the file."""
        return self._fingerprint.continues(file)

    def _take(self, split: Split) -> None:
        if self._spool is not None and split.data:
            self._spool.append(split.data, split.ends)
        if not split.count:
            return
        begin = max(self._counted, self._splitter.begin)
        if self.first_record_at is None:
            self.first_record_at = begin
        if begin == self._split_at:
            self._splits += (begin,)
        self._split_at = None
        self._counted = self._splitter.offset
        self.rows += split.count
