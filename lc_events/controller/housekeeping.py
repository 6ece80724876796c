"""What a store needs now and then: known messages that are old enough go, an idle write-ahead log is folded in."""

from __future__ import annotations

import logging

from lc_events.application.journal import STORE_ERRORS, Journal
from lc_events.controller.committer import Committer
from lc_events.runtime.clock import Clock

__all__ = ["Housekeeping"]

_log = logging.getLogger("lc_events.housekeeping")

_PERIOD = 3600.0
_KEPT_SECONDS = 7 * 24 * 3600.0
_KEPT_MESSAGES = 100_000


class Housekeeping:
    """Runs every hour on the committer's thread, the only one that writes."""

    def __init__(self, committer: Committer, journal: Journal, clock: Clock) -> None:
        self._committer = committer
        self._journal = journal
        self._clock = clock

    def start(self) -> None:
        """Begin, an hour from now."""
        self._committer.later(_PERIOD, self._keep)

    def _keep(self) -> None:
        self._committer.later(_PERIOD, self._keep)
        try:
            before = self._clock.now().timestamp() - _KEPT_SECONDS
            self._journal.rows.forget_known(before=before, keep=_KEPT_MESSAGES)
            self._journal.rows.checkpoint()
        except STORE_ERRORS as error:
            _log.warning("%s: %s", self._journal.path, error)
