"""The way out: the notification log is the outbox; what was published moves its position, what was not comes again."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from lc_events.application.journal import STORE_ERRORS, Journal
from lc_events.application.recorder import StoredRow
from lc_events.controller.latest import LatestValues
from lc_events.controller.outbox_log import OutboxLog
from lc_events.controller.outbox_mark import OutboxMark
from lc_events.controller.outbox_progress import Progress
from lc_events.controller.outbox_repeats import DueRepeats, Report
from lc_events.controller.publications import Publications
from lc_events.controller.world import State
from lc_events.errors import BrokerError, LcError, UsageError
from lc_events.faults import reach
from lc_events.mqtt.packets import DISCONNECTED, Publication
from lc_events.runtime.clock import Clock

__all__ = ["POSITION", "Outbox"]

_log = logging.getLogger("lc_events.outbox")

POSITION = "outbox"
"""The name of the outbox's place in the log."""

_WINDOW = 100
_EVENTS_AT_ONCE = 20
_LATEST_SECONDS = 0.003
_LATEST_WHEN_BEHIND = 0.05
_IDLE = 5.0
_PAUSE = 1.0
_DIRECT = 10_000


class _InFlight(NamedTuple):
    """A publication that the broker has not confirmed, and the notification that it is of."""

    connection: int
    notification_id: int | None
    topic: str


class Outbox:
    """A thread that publishes reports and `done`, then events, then latest values; at most 100 unconfirmed at once.

    What was read for one connection does not leave on the next. Each begins with its birth, and with a look at what
    the broker has, for which only answers do not wait. Then the log goes on behind the last confirmed position, events
    behind the one that the broker still knows of: what is sent twice carries the same id.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        publications: Publications,
        latest: LatestValues,
        mark: OutboxMark,
        clock: Clock,
        publish: Callable[[Publication, int], int],
        note_position: Callable[[str, int], None],
    ) -> None:
        self._journal = journal
        self._latest = latest
        self._mark = mark
        self._clock = clock
        self._publish = publish
        self._note_position = note_position
        position = journal.rows.position(POSITION)
        self._log = OutboxLog(journal, publications, position)
        self._progress = Progress(position)
        self._changed = threading.Condition()
        self._connected = False
        self._connection = 0
        self._begun = 0
        """The connection on which the log was begun."""
        self._stopping = False
        self._has_news = False
        """The log may have grown since it was last read."""
        self._in_flight: dict[int, _InFlight] = {}
        self._latest_sent = float("-inf")
        self._direct: deque[Publication] = deque(maxlen=_DIRECT)
        self._repeats = DueRepeats()
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)

    @property
    def position(self) -> int:
        """The last notification of which all publications are confirmed, with all before it."""
        return self._progress.position

    def start(self) -> None:
        """Begin; nothing goes out before a connection."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Send what is in the log and wait for the broker's word, at most `timeout` s."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def wake(self, states: Iterable[State]) -> None:
        """Something was committed."""
        with self._changed:
            for state in states:
                self._latest.changed(state.stream)
            self._has_news = True
            self._changed.notify_all()

    def connected(self, birth: Publication, number: int) -> None:
        """The client has connection `number`: `birth` first, then all that the broker lacks, and all latest values."""
        with self._changed:
            self._connection = number
            self._connected = True
            self._in_flight.clear()
            self._direct.appendleft(birth)
            self._send_direct()
            self._changed.notify_all()

    def published(self, ticket: int, error: str | None, reason: int | None = None) -> None:
        """The broker's word on a publication, with its reason code if it refused; on the connection's thread."""
        with self._changed:
            sent = self._in_flight.pop(ticket, None)
            if sent is None or sent.connection != self._connection:
                return
            if error == DISCONNECTED:
                self._connected = False
            else:
                if error is not None:
                    _log.error("the broker refused %s: %s", sent.topic, error)
                    if sent.topic == self._mark.topic and reason is not None:
                        self._mark.refused(reason)
                self._confirm(sent.notification_id)
                self._send_direct()
            self._changed.notify_all()

    def _confirm(self, notification_id: int | None) -> None:
        if notification_id is not None and self._progress.note_confirmed(notification_id):
            self._note_newest()

    def _note_newest(self) -> None:
        self._note_position(POSITION, self._progress.newest)
        reach("position-noted")

    def publish(self, publication: Publication) -> None:
        """Publish once, if there is a connection; at once if the window has room. Nobody is harmed by its loss."""
        with self._changed:
            if self._connected:
                self._direct.append(publication)
                self._send_direct()

    def refresh(self, stream: str) -> None:
        """Publish the latest values of a resource again, empty ones for what is deleted or was never there."""
        with self._changed:
            self._latest.again(stream)
            self._changed.notify_all()

    def repeat(self, stream: str, versions: Iterable[int]) -> None:
        """Send the reports that these events caused again, under the same ids."""
        with self._changed:
            for version in versions:
                self._repeats.add(Report(stream, version))
            self._changed.notify_all()

    def report_again(self, stream: str, version: int) -> None:
        """GM asks for a report that it had: at most once in 60 s, counted from the last sending."""
        with self._changed:
            self._repeats.ask(Report(stream, version), self._clock.monotonic())
            self._changed.notify_all()

    def _run(self) -> None:
        while self._wait():
            before = self._connection, self._stopping
            try:
                connection = self._begin()
                self._send_repeats(connection)
                is_behind = self._send_log(connection)
                if not is_behind or self._clock.monotonic() - self._latest_sent >= _LATEST_WHEN_BEHIND:
                    self._send_latest(connection)
                    self._send_mark(connection)
            except BrokerError as error:
                _log.debug("%s", error)
            except UsageError as error:  # of the look, for which the TLS files are read anew
                _log.error("the broker cannot be asked how far it has the log: %s", error)
            except (LcError, *STORE_ERRORS) as error:
                _log.error("the log cannot be read: %s", error)
            except Exception:  # noqa: BLE001 - the outbox must outlive any defect
                _log.exception("the outbox failed")
            else:
                continue
            self._pause(before)

    def _begin(self) -> int:
        """Look how far the broker has the log on a new connection; the connection's number.

        Of what a killed broker lost only events are sent again: reports and `done` are repeated end to end. A broker
        that is killed after the look ends the connection.
        """
        while True:
            with self._changed:
                connection = self._connection
                if connection == self._begun:
                    return connection
            position = self._mark.begin(self._progress.newest, end=self._journal.rows.max_notification_id() or 0)
            with self._changed:
                self._log.begin(position, urgent_sent_to=self._progress.newest)
                self._progress.begin(position)
                self._latest.all_changed()  # not before: what an older connection did not take counts as published
                self._begun = connection
                self._has_news = True

    def _pause(self, before: tuple[int, bool]) -> None:
        """Wait before the next try, whatever is committed; a stop or a new connection since `before` ends it."""
        with self._changed:
            self._changed.wait_for(
                lambda: (self._connection, self._stopping) != before or not self._connected, timeout=_PAUSE
            )
            self._has_news = True  # for what could not be read

    def _wait(self) -> bool:
        """Wait for something to send; False once stopped and all of it is confirmed, or cannot be sent."""
        with self._changed:
            while True:
                due = self._due_in()
                if self._connected and (self._has_work() or due == 0):
                    return True
                if self._stopping and not (self._connected and self._in_flight):
                    return False
                self._changed.wait(_IDLE if due is None or not self._connected else due)

    def _has_work(self) -> bool:
        return (
            self._begun != self._connection
            or self._has_news
            or self._log.has_pending_events()
            or self._repeats.has_any()
        )

    def _due_in(self) -> float | None:
        now = self._now()
        dues = (self._latest.due_in(now), self._mark.due_in(self.position, now))
        return min((due for due in dues if due is not None), default=None)

    def _now(self) -> float:
        """Now for retained values: when we stop, all of them are due."""
        return float("inf") if self._stopping else self._clock.monotonic()

    def _send(self, publication: Publication, connection: int, notification_id: int | None = None) -> None:
        """Send when the window has room; BrokerError once the connection that it is meant for is gone."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._in_flight) < _WINDOW or not self._connected)
            if not self._connected or connection != self._connection:
                raise BrokerError("the connection is gone", code="not_connected")
            self._hand_over(publication, notification_id)

    def _send_direct(self) -> None:
        """The birth and answers, on any thread, while the window has room: they wait for neither log nor look."""
        try:
            while self._direct and self._connected and len(self._in_flight) < _WINDOW:
                self._hand_over(self._direct.popleft())
        except BrokerError as error:
            _log.debug("%s", error)

    def _hand_over(self, publication: Publication, notification_id: int | None = None) -> None:
        """To the client, for the present connection; BrokerError once that is gone."""
        connection = self._connection
        try:
            ticket = self._publish(publication, connection)
        except BrokerError as error:
            if error.code != "too_large":
                self._connected = False
                self._changed.notify_all()
                raise
            _log.error("%s: %s", publication.topic, error)
            self._confirm(notification_id)
        else:
            self._in_flight[ticket] = _InFlight(connection, notification_id, publication.topic)

    def _send_repeats(self, connection: int) -> None:
        while True:
            with self._changed:
                due = self._repeats.take()
            if due is None:
                return
            is_still_due = False
            try:
                report = self._log.report(due.stream, due.version)
                if report is not None:
                    self._send(report.publication, connection)
                    self._note_sent(report.row)
            except (BrokerError, *STORE_ERRORS):
                is_still_due = True
                raise
            finally:
                with self._changed:
                    self._repeats.done(is_still_due=is_still_due)

    def _note_sent(self, row: StoredRow) -> None:
        with self._changed:
            self._repeats.note_sent(Report(row.stream, row.version), self._clock.monotonic())

    def _send_log(self, connection: int) -> bool:
        """Send what is urgent in the next part of the log, then some events; whether there is more to send.

        However many events are pending, the reports that come after them are sent as soon as they are there.
        """
        self._send_urgent(connection)
        for _ in range(_EVENTS_AT_ONCE):
            if not self._send_next_event(connection):
                break
        with self._changed:
            return self._has_news or self._log.has_pending_events()

    def _send_urgent(self, connection: int) -> None:
        with self._changed:
            if not self._has_news:
                return
            self._has_news = False
        rows, has_more = self._log.next_rows()
        if not rows:
            return
        urgent = list(self._log.urgent(rows))
        with self._changed:
            self._has_news = self._has_news or has_more
            self._progress.note_urgent(row.notification_id for row, _ in urgent)
        self._log.take_urgent(rows)
        for row, publication in urgent:
            self._send(publication, connection, row.notification_id)
            self._note_sent(row)
            reach("report-sent" if "/up/" in publication.topic else "done-sent")

    def _send_next_event(self, connection: int) -> bool:
        """Send the next event; False if there is none."""
        row = self._log.next_event()
        if row is None:
            return False
        event = self._log.cloud_event(row)
        with self._changed:
            self._log.take_event()
            if self._progress.note_event(row.notification_id, is_left_out=event is None):
                self._note_newest()
        if event is not None:
            self._send(event, connection, row.notification_id)
            reach("event-sent")
        return True

    def _send_latest(self, connection: int) -> None:
        """For a few milliseconds: many become due together, and reports must not wait behind all of them."""
        self._latest_sent = self._clock.monotonic()
        while self._is_latest_due():
            for publication in self._latest.take_due(self._now()):
                self._send(publication, connection)
                reach("latest-sent")
            if self._clock.monotonic() - self._latest_sent >= _LATEST_SECONDS:
                return

    def _is_latest_due(self) -> bool:
        with self._changed:
            return self._latest.due_in(self._now()) == 0

    def _send_mark(self, connection: int) -> None:
        with self._changed:
            mark = self._mark.take_due(self.position, self._now())
        if mark is not None:
            self._send(mark, connection)
