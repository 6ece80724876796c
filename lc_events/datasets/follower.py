"""Following one growing file: what a look finds, and when the next one is due."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lc_events.datasets.fingerprint import Fingerprint, edges_match
from lc_events.datasets.mark import Batch, Grew, Look, Mark, Reset, Unchanged, Unreadable
from lc_events.datasets.reading import Reading
from lc_events.datasets.records import BOM
from lc_events.datasets.recovery import recover
from lc_events.datasets.source import LocalSource, ReplacedError, SourceStat, UnreadableError
from lc_events.datasets.stillness import SETTLE_SECONDS, Stillness, same_state
from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lc_events.datasets.source import OpenSource, Source
    from lc_events.datasets.spool import Spool

__all__ = ["Follower"]

FOLLOW_SECONDS = 0.5
_REPLACEMENTS = 3


class Follower:
    """Follows one growing file: each look counts, and spools if asked to, the records that have come to their end.

    A batch is what was appended until the file stood still for 20 ms, at most 500 ms; a look takes about that long, or
    as long as reading the counted part once where it must be compared (a file that changed without growing). A partial
    last line counts once it stood still for `partial_seconds`. What a look returned counts after `committed(mark)`;
    without that, the next look returns it again. One call at a time. The spool must be cut to its committed length.

    `mark` is the last committed one. `clock` is monotonic seconds, `sleep` waits, `wall_ns` is the clock of files.
    """

    def __init__(
        self,
        source: Path | Source,
        *,
        url: str,
        format: str,  # noqa: A002 - the dataset's own word for it
        mark: Mark | None,
        spool: Spool,
        partial_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._source: Source = LocalSource(source) if isinstance(source, Path) else source
        self._url = url
        self._format = format
        self._mark = mark or Mark()
        self._spool = spool
        self._partial_seconds = partial_seconds
        self._clock = clock
        self._sleep = sleep
        self._stillness = Stillness(clock=clock, wall_ns=wall_ns)
        self._pending: Mark | None = None
        self._spool_is_dirty = False
        self._reading: Reading | None = None
        self._seen = SourceStat(self._mark.size, self._mark.identity, self._mark.stamp, None)
        self._stuck: tuple[SourceStat, Unreadable] | None = None
        self._was_readable = False

    @property
    def mark(self) -> Mark:
        """The last committed mark."""
        return self._mark

    def committed(self, mark: Mark) -> None:
        """The observation that carried this mark is on disk; raises `ValueError` if it is not the one outstanding."""
        if self._pending is None or mark != self._pending:
            raise ValueError(f"{self._url}: no observation with this mark is outstanding")
        self._pending = None
        self._spool.commit()
        self._mark = mark
        if self._reading is not None:
            self._reading.begin_batch()

    def look(self, *, keep: bool) -> Look:
        """Look at the file once; `keep` spools new records, else they are only counted (nobody needs them).

        Trouble with the dataset is returned, trouble with the spool raised as `StorageError` (look again later).
        """
        self._take_back()
        try:
            look = self._patient_look(keep=keep)
        except UnreadableError as error:
            look = self._unreadable(error)
            self._drop_reading()
        except BaseException:
            self._spool_is_dirty = True
            raise
        self._was_readable = not isinstance(look, Unreadable)
        return look

    def reread(self, *, rows: int, offset: int, until: Mark) -> Batch:
        """Spool records that were only counted, for a job that needs them: from record `rows`, at byte `offset`.

        `until` is the present `mark`; the batch ends there and counts once `committed(until)` was called. Raises
        `StorageError`, with code `changed` if the file is not the one that was counted: the next look says how.
        """
        if until != self._mark:
            raise ValueError(f"{self._url}: records can be read again up to the present mark only")
        self._take_back()
        self._drop_reading()
        self._spool_is_dirty = True
        with self._source.open() as file:
            begins_file = offset == 0 or (offset == len(BOM) and file.read(0, offset) == BOM)
            begin = Mark(
                rows=rows,
                offset=offset,
                header=until.header if offset else None,
                after_partial=not begins_file and file.read(offset - 1, 1) != b"\n",
            )
            reading = Reading(begin, Fingerprint(), format_name=self._format, spool=self._spool)
            reading.advance_again(file, until.offset, until.splits)
            found = reading.mark(self._seen)
            same = (found.rows, found.offset) == (until.rows, until.offset) and edges_match(file, until)
            if offset == 0 < until.offset:
                same = same and (found.chain, found.rest) == (until.chain, until.rest)
        if not same:
            raise StorageError(f"{self._url}: changed since it was counted", code="changed")
        batch = self._batch(reading, rows, until)
        self._pending = until
        self._spool_is_dirty = False
        return batch

    def settle(self) -> None:
        """Go back to what was committed, and see anew what the spool's files hold; raises `StorageError`."""
        self._spool_is_dirty = True
        self._take_back()

    def restore(self, batches: Iterable[Batch]) -> None:
        """Put batches that the spool lost back into it from the file, under their old numbers.

        They must have been counted in the present file. Raises `UnreadableError` if it cannot be read, `StorageError`
        with code `changed` if it is not the one that was counted (the next look says how), or of the spool.
        """
        self.settle()
        with self._source.open() as file:
            recover(self._spool, file, batches, mark=self._mark, format_name=self._format)

    def _patient_look(self, *, keep: bool) -> Look:
        """A look that begins again where the file was on its way to another one."""
        for _ in range(_REPLACEMENTS):
            try:
                return self._look(keep=keep)
            except ReplacedError:
                self._drop_reading()
            except UnreadableError as error:
                if not (error.missing and self._was_readable):
                    raise
                # Some programs delete a file and write it anew: it is back in a moment.
                self._was_readable = False
                self._sleep(SETTLE_SECONDS)
        return self._look(keep=keep)

    def _look(self, *, keep: bool) -> Look:
        stat = self._stillness.look_at(self._source)
        if (known := self._known(stat, keep=keep)) is not None:
            return known
        deadline = self._clock() + FOLLOW_SECONDS
        while True:
            with self._source.open() as file:
                look = self._look_at(file, keep=keep, deadline=deadline)
            if look is not None:
                return look
            self._sleep(SETTLE_SECONDS)

    def _known(self, stat: SourceStat, *, keep: bool) -> Look | None:
        """What there is to say of a file that has not changed since the last look, if nothing is left to be read."""
        if self._stuck is not None and same_state(self._stuck[0], stat):
            return self._stuck[1]
        reading = self._reading
        if reading is None or reading.error is not None or reading.keeps != keep or reading.position != stat.size:
            return None
        if not same_state(stat, self._seen):
            return None
        due = self._partial_due_in(reading)
        return Unchanged(due) if due is None or due > 0 else None

    def _look_at(self, file: OpenSource, *, keep: bool, deadline: float) -> Look | None:
        """Compare, read on and report; None if the file must first stand still to be judged."""
        stat = self._stillness.look_at(file)
        same = same_state(stat, self._seen)
        plain = same or (stat.identity == self._seen.identity and stat.size > self._seen.size)
        may_wait = self._stillness.restless_for(stat) > 0 and self._clock() < deadline
        if may_wait and self._mark.offset and not plain:
            return None
        reading = self._reading
        if reading is not None and not (plain and reading.keeps == keep and (same or reading.continues(file))):
            self._drop_reading()
        going_on = self._going_on(file, stat, plain=plain, keep=keep)
        if isinstance(going_on, str):
            return None if may_wait else self._reset(going_on)
        self._reading = going_on
        return self._report(going_on, *self._follow(going_on, file, stat, deadline))

    def _going_on(self, file: OpenSource, stat: SourceStat, *, plain: bool, keep: bool) -> Reading | str:
        """What to go on reading with; in words, why not, if the file is not the one that was counted.

        One that only grew is compared at its edges, any other wholly.
        """
        mark = self._mark
        if stat.size < mark.offset:
            return f"the file shrank to {stat.size} bytes, of which {mark.offset} had been counted"
        if self._reading is not None and edges_match(file, mark):
            return self._reading
        if self._reading is None:
            fingerprint = Fingerprint.resume(file, mark) if plain else Fingerprint.of(file, mark.offset)
            if fingerprint.matches(mark):
                spool = self._spool if keep else None
                return Reading(mark, fingerprint, format_name=self._format, spool=spool)
        return "the bytes that had been counted are no longer the same"

    def _follow(self, reading: Reading, file: OpenSource, stat: SourceStat, deadline: float) -> tuple[SourceStat, bool]:
        """Read on until the file stands still; the state that was read up to, and whether that is a file at rest."""
        while True:
            reading.advance(file, stat.size, stop=lambda: self._clock() >= deadline)
            wait = self._stillness.restless_for(stat)
            left = deadline - self._clock()
            if reading.position != stat.size or wait <= 0 or left <= 0:
                return stat, reading.position == stat.size and wait <= 0
            self._sleep(min(wait, left))
            now = self._stillness.look_at(file)
            if not same_state(now, stat) and (now.size <= stat.size):
                return stat, False
            stat = now

    def _report(self, reading: Reading, stat: SourceStat, at_rest: bool) -> Look:
        error = reading.error
        again_in = 0.0 if error is None and not at_rest else None
        if error is None and at_rest and (due := self._partial_due_in(reading)) is not None:
            if due > 0:
                again_in = due
            elif reading.can_finish():
                reading.finish()
            else:
                error = _unended_quote(reading)
        grain = self._stillness.grain_left(stat)
        if grain > 0 and (again_in is None or again_in > grain):
            again_in = grain
        self._seen = dataclasses.replace(stat, stamp="") if grain > 0 else stat
        if reading.rows > self._mark.rows:
            mark = reading.mark(self._seen)
            batch = self._batch(reading, self._mark.rows, mark)
            self._pending = mark
            return Grew(batch, mark, again_in if error is None else 0.0)
        if error is not None:
            self._stuck = (self._seen, self._unreadable(error))
            raise error
        return Unchanged(again_in)

    def _batch(self, reading: Reading, rows: int, mark: Mark) -> Batch:
        begin = mark.offset if reading.first_record_at is None else reading.first_record_at
        spooled = None
        if reading.keeps:
            self._spool.sync()
            spooled = (self._spool.committed, self._spool.length)
        return Batch((rows, mark.rows), (begin, mark.offset), spooled, mark.header)

    def _reset(self, reason: str) -> Reset:
        self._drop_reading()
        self._pending = Mark()
        return Reset(reason, self._pending)

    def _unreadable(self, error: UnreadableError) -> Unreadable:
        return Unreadable(error.code, f"{self._url}: {error}")

    def _take_back(self) -> None:
        """Forget what was observed and not committed."""
        if self._pending is None and not self._spool_is_dirty:
            return
        self._pending = None
        self._reading = None
        self._cut()

    def _drop_reading(self) -> None:
        """Begin again from the mark with the next look; what the spool holds of a partial record goes."""
        reading, self._reading = self._reading, None
        if reading is not None and reading.keeps:
            self._cut()

    def _cut(self) -> None:
        self._spool_is_dirty = True
        self._spool.cut(self._spool.committed)
        self._spool_is_dirty = False

    def _partial_due_in(self, reading: Reading) -> float | None:
        """Seconds until the partial last line counts, or its open quote is an error; None if there is none."""
        if not reading.can_finish() and reading.open_quote() is None:
            return None
        return max(0.0, self._partial_seconds - self._stillness.seconds())


def _unended_quote(reading: Reading) -> UnreadableError:
    return UnreadableError(
        f"the file ends within the quoted field that begins at byte {reading.open_quote()}", code="csv_quote"
    )
