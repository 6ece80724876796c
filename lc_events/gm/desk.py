"""What the taking in of messages needs, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lc_events.application.known import Recent
from lc_events.domain.stamp import stamp
from lc_events.gm.ledger import Changes, Ledger
from lc_events.gm.outbox import Outbox
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.topics import Topics
from lc_events.runtime.clock import Clock
from lc_events.runtime.vault import Vault

__all__ = ["MAX_BYTES", "Desk"]

MAX_BYTES = 1_048_576
"""Larger messages are refused, as LCs do by default."""


@dataclass(frozen=True)
class Desk:
    """The committed states, what goes out, and where secrets lie."""

    topics: Topics
    ledger: Ledger
    outbox: Outbox
    vault: Vault
    recent: Recent
    clock: Clock
    publish: Callable[[Publication], object]

    def now(self) -> str:
        """The receipt time of what is being taken in."""
        return stamp(self.clock.now())

    def commit(self, changes: Changes) -> None:
        """Save, then see what is to be said now; StoreError if nothing was saved."""
        self.ledger.commit(changes)
        for state in changes.states.values():
            self.outbox.consider(state)
