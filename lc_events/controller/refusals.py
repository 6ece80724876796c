"""Refusing at the door: quarantine, `sedna/errors/NODE`, and `done` with the code for a worker that waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from lc_events.controller.quarantine import Quarantine
from lc_events.messages.json import dumps
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.topics import Topics
from lc_events.runtime.rate import Rate

__all__ = ["Refusals"]

_log = logging.getLogger("lc_events.refusals")

_BURST = 100
_PER_SECOND = 20.0
_COUNT_SECONDS = 10.0


class Refusals:
    """Keeps, logs and reports what was refused.

    Beyond 20 a second (100 at once) it is only kept, without waiting for the disk, and counted in the log: a flood of
    nonsense must not hold up the messages that make sense.
    """

    def __init__(
        self,
        *,
        node: str,
        topics: Topics,
        quarantine: Quarantine,
        publish: Callable[[Publication], None],
        monotonic: Callable[[], float],
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        """`later` calls back after so many seconds."""
        self._node = node
        self._topics = topics
        self._quarantine = quarantine
        self._publish = publish
        self._rate = Rate(per_second=_PER_SECOND, burst=_BURST, monotonic=monotonic)
        self._later = later
        self._lock = threading.Lock()
        self._not_logged = 0

    def refuse(
        self, *, time: str, topic: str, payload: bytes, code: str, error: str, message_id: str | None = None
    ) -> None:
        """Keep a message that is not taken and say why; if even that fails, the log has it."""
        may_report = self._rate.allows()
        try:
            entry_id: str | None = self._quarantine.put(
                time=time, topic=topic, code=code, error=error, payload=payload, is_synced=may_report
            )
        except OSError as failure:
            _log.error("%s: refused (%s: %s), and quarantine cannot keep it: %s", topic[:200], code, error, failure)
            entry_id = None
        else:
            if may_report:
                _log.warning("%s: refused (%s: %s), kept as %s", topic[:200], code, error, entry_id)
            else:
                self._count()
        if may_report:
            self._say(code=code, error=error, topic=topic, id=message_id, quarantine=entry_id, time=time)

    def report(self, *, code: str, error: str, topic: str, time: str) -> None:
        """Say on `sedna/errors/NODE` what is wrong without a message being refused, within the rate."""
        if self._rate.allows():
            self._say(code=code, error=error, topic=topic, id=None, quarantine=None, time=time)

    def _count(self) -> None:
        with self._lock:
            self._not_logged += 1
            is_first = self._not_logged == 1
        if is_first:
            self._later(_COUNT_SECONDS, self._log_count)

    def _log_count(self) -> None:
        with self._lock:
            count, self._not_logged = self._not_logged, 0
        _log.warning("%d more were refused within %.0f s: see lc-events quarantine list", count, _COUNT_SECONDS)

    def _say(self, **report: str | None) -> None:
        self._publish(Publication(self._topics.errors(self._node), dumps(report)))
