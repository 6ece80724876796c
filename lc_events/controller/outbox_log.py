"""The log as the outbox reads it: ahead for what is urgent, and behind that, in its own time, for the events."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lc_events.application.chain import EMPTY
from lc_events.application.journal import Journal
from lc_events.application.recorder import StoredRow
from lc_events.controller.publications import Publications
from lc_events.errors import IntegrityError, RefusedError
from lc_events.mqtt.packets import Publication

__all__ = ["OutboxLog", "Urgent"]

_log = logging.getLogger("lc_events.outbox")

_CHUNK = 200
_AHEAD = 1000
_UNREADABLE = (IntegrityError, RefusedError, LookupError, ValueError, TypeError)
"""What a row raises that is damaged, or of a version with other fields; `RefusedError`: by a name that no topic takes.

Reading it again would raise the same, and all rows behind it would wait. `STORE_ERRORS` are none of these.
"""


class Urgent(NamedTuple):
    """A report or `done`, and the event that caused it."""

    row: StoredRow
    publication: Publication


class OutboxLog:
    """Where the outbox is in the log, and what it finds there. The outbox's thread alone calls it.

    A place moves only when the caller says so: what fails half-way is read again. All but that raises `STORE_ERRORS`.
    """

    def __init__(self, journal: Journal, publications: Publications, position: int) -> None:
        self._journal = journal
        self._publications = publications
        self._hashes: dict[str, tuple[int, str]] = {}
        self.begin(position, urgent_sent_to=position)

    def begin(self, position: int, *, urgent_sent_to: int) -> None:
        """Begin anew: the events behind `position` are to be sent, of what is urgent only that behind the other."""
        self._loaded_to, self._urgent_sent_to = position, urgent_sent_to
        self._pending: deque[StoredRow] = deque()
        """Rows up to `_loaded_to` whose events are still to be sent."""

    def has_pending_events(self) -> bool:
        """Whether events are still to be sent of what was looked at for urgent publications."""
        return bool(self._pending) or self._loaded_to < self._urgent_sent_to

    def next_rows(self) -> tuple[Sequence[StoredRow], bool]:
        """The rows that come next for what is urgent of them, at most 200, and whether there may be more."""
        rows = self._journal.rows.rows(gt=self._urgent_sent_to, limit=_CHUNK)
        return rows, len(rows) == _CHUNK

    def urgent(self, rows: Sequence[StoredRow]) -> Iterator[Urgent]:
        """Reports and `done` of these events; one that cannot be read is left out, for the others must not wait."""
        for row in rows:
            if not self._publications.is_urgent(row.name):
                continue
            try:
                event = self._journal.decode(row)
                publications = (self._publications.report(row, event), self._publications.done(event))
            except _UNREADABLE as error:
                _log.error("%s version %d cannot be reported: %r", row.stream, row.version, error)
                continue
            for publication in publications:
                if publication is not None:
                    yield Urgent(row, publication)

    def take_urgent(self, rows: Sequence[StoredRow]) -> None:
        """What is urgent of the `next_rows` is on its way; their events are pending."""
        is_loaded = self._loaded_to == self._urgent_sent_to
        self._urgent_sent_to = rows[-1].notification_id
        if is_loaded and len(self._pending) < _AHEAD:
            self._pending.extend(rows)
            self._loaded_to = self._urgent_sent_to

    def next_event(self) -> StoredRow | None:
        """The row of the first pending event, read anew where reports have gone far ahead of it; None without one."""
        if not self._pending and self._loaded_to < self._urgent_sent_to:
            self._pending.extend(self._journal.rows.rows(gt=self._loaded_to, lte=self._urgent_sent_to, limit=_CHUNK))
            self._loaded_to = self._pending[-1].notification_id if self._pending else self._urgent_sent_to
        return self._pending[0] if self._pending else None

    def take_event(self) -> None:
        """The `next_event` is on its way, or left out."""
        self._pending.popleft()

    def cloud_event(self, row: StoredRow) -> Publication | None:
        """The event itself; one that cannot be read is left out."""
        try:
            return self._publications.cloud_event(row, self._previous_hash(row))
        except _UNREADABLE as error:
            _log.error("%s version %d cannot be published: %r", row.stream, row.version, error)
            return None

    def report(self, stream: str, version: int) -> Urgent | None:
        """The report that one event caused, to be sent again; None if it caused none, or cannot be read."""
        for row in self._journal.rows.rows(stream=stream, gt=version - 1, lte=version):
            try:
                report = self._publications.report(row, self._journal.decode(row))
            except _UNREADABLE as error:
                _log.error("%s version %d cannot be reported: %r", row.stream, row.version, error)
                continue
            if report is not None:
                return Urgent(row, report)
        return None

    def _previous_hash(self, row: StoredRow) -> str:
        known = self._hashes.get(row.stream)
        if row.version == 1:
            previous = EMPTY
        elif known is not None and known[0] == row.version - 1:
            previous = known[1]
        else:
            before = self._journal.rows.rows(stream=row.stream, gt=row.version - 2, lte=row.version - 1)
            previous = before[0].hash if before else EMPTY
        self._hashes[row.stream] = (row.version, row.hash)
        return previous
