"""What is still to be said, and when again: resources until shown, orders until answered, confirmations once."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from eventsourcing.persistence import PersistenceError

from lc_events.errors import BrokerError
from lc_events.gm.job import GmJob, Order
from lc_events.gm.ledger import Ledger, State
from lc_events.gm.publications import acknowledgement, cancel_order, resource_message, work_order_message
from lc_events.messages.names import Stream
from lc_events.messages.secrets import Secrets
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.topics import Topics
from lc_events.runtime.clock import Clock

__all__ = ["Outbox", "Pauses"]

_CANCEL_FOR = timedelta(days=1)
"""How long a cancel is repeated: an agent that ran nothing by that order never answers."""

_WINDOW_FULL_PAUSE = 0.1
_STORE_PAUSE = 5.0
_MOST_IDS = 500

_log = logging.getLogger("lc_events.gm")


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds: before the first repeat, the longest between two, and between two confirmations to one node."""

    first: float = 10.0
    longest: float = 600.0
    acknowledge: float = 0.02


class Message(NamedTuple):
    """Something to repeat; equal values are the same message, so a newer version takes the place of an older."""

    what: Literal["resource", "order", "cancel"]
    stream: Stream
    node: str
    id: str | int


@dataclass(slots=True)
class _Turn:
    due: float
    pause: float


class Outbox:
    """Everything here follows from the states: after a restart `consider` finds all that is unsettled again.

    Repeats come with pauses that double; a new connection, or a node that comes back, has all of it said at once.
    """

    def __init__(
        self,
        ledger: Ledger,
        topics: Topics,
        clock: Clock,
        *,
        publish: Callable[[Publication], object],
        secrets: Callable[[Stream], Secrets],
        pauses: Pauses,
    ) -> None:
        self._ledger = ledger
        self._topics = topics
        self._clock = clock
        self._publish = publish
        self._secrets = secrets
        self._pauses = pauses
        self._turns: dict[Stream, dict[Message, _Turn]] = {}
        self._reopened: set[tuple[Stream, str]] = set()
        self._confirmed: defaultdict[str, list[str]] = defaultdict(list)
        self._confirm_at: float | None = None
        self._confirmed_last = float("-inf")
        self._blocked_until = float("-inf")

    def consider(self, state: State) -> None:
        """See what is to be said of a resource now: what is new is due, what is settled is dropped."""
        now, turns = self._clock.monotonic(), self._turns.pop(state.stream, {})
        wanted = {message: turns.get(message) or self._first_turn(message, now) for message in self._wanted(state)}
        if wanted:
            self._turns[state.stream] = wanted

    def reopen(self, state: State, node: str) -> None:
        """Say the newest message to a node again although it had it: the node went back to an older state."""
        if (state.stream, node) not in self._reopened:
            _log.warning("%s: node %s lost what it had of it; it is told again", state.stream, node)
            self._reopened.add((state.stream, node))
            self.consider(state)

    def close(self, state: State, node: str) -> None:
        """A node has the newest message."""
        self._reopened.discard((state.stream, node))
        self.consider(state)

    def confirm(self, node: str, report_id: str) -> None:
        """Tell a node's LC that its report is on disk, together with others of the next moment."""
        self._confirmed[node].append(report_id)
        if self._confirm_at is None:
            self._confirm_at = max(self._clock.monotonic(), self._confirmed_last + self._pauses.acknowledge)

    def connected(self) -> None:
        """All is due: nobody knows what was lost with the old connection."""
        self._blocked_until = float("-inf")
        for turns in self._turns.values():
            for turn in turns.values():
                turn.due, turn.pause = float("-inf"), self._pauses.first

    def node_is_back(self, node: str) -> None:
        """What a node has not shown or answered is due."""
        for turns in self._turns.values():
            for message, turn in turns.items():
                if message.node == node:
                    turn.due, turn.pause = float("-inf"), self._pauses.first

    def finish(self) -> None:
        """Say the confirmations that wait for their moment, before the connection ends."""
        with suppress(BrokerError):
            self._send_confirmations(self._clock.monotonic())

    def next_due(self) -> float | None:
        """The monotonic second at which there is something to say."""
        dues = [turn.due for turns in self._turns.values() for turn in turns.values()]
        if self._confirm_at is not None:
            dues.append(self._confirm_at)
        return max(min(dues), self._blocked_until) if dues else None

    def send_due(self) -> None:
        """Say what is due: confirmations first, then resources, then the orders that need them."""
        now = self._clock.monotonic()
        if now < self._blocked_until:
            return
        due = [(m, turn) for turns in self._turns.values() for m, turn in turns.items() if turn.due <= now]
        try:
            if due or (self._confirm_at is not None and self._confirm_at <= now):
                self._send_confirmations(now)
            for message, turn in sorted(due, key=lambda pair: pair[0].what != "resource"):
                self._send(message)
                turn.due, turn.pause = now + turn.pause, min(turn.pause * 2, self._pauses.longest)
        except BrokerError as error:
            _log.debug("the rest is sent later: %s", error)
            self._blocked_until = now + _WINDOW_FULL_PAUSE
        except PersistenceError as error:
            _log.error("the store cannot be read, so nothing is sent: %s", error)
            self._blocked_until = now + _STORE_PAUSE

    def _wanted(self, state: State) -> Iterator[Message]:
        for node, delivery in state.deliveries.items():
            if not delivery.settled or (state.stream, node) in self._reopened:
                yield Message("resource", state.stream, node, delivery.version)
        if isinstance(state, GmJob):
            if state.is_live and state.order is not None and not state.order.answered:
                yield Message("order", state.stream, state.order.node, state.order.id)
            for order in state.cancelled:
                yield Message("cancel", state.stream, order.node, order.id)

    def _first_turn(self, message: Message, now: float) -> _Turn:
        """At once; but a node that seems to have gone back may only be late in showing what it has."""
        is_reopened = message.what == "resource" and (message.stream, message.node) in self._reopened
        return _Turn(now + self._pauses.first if is_reopened else now, self._pauses.first)

    def _send_confirmations(self, now: float) -> None:
        for node in list(self._confirmed):
            ids = list(dict.fromkeys(self._confirmed[node]))
            for start in range(0, len(ids), _MOST_IDS):
                self._publish(acknowledgement(self._topics, node, ids[start : start + _MOST_IDS]))
            del self._confirmed[node]
        self._confirm_at, self._confirmed_last = None, now

    def _send(self, message: Message) -> None:
        """BrokerError if nothing can be sent now; what alone cannot be sent is logged, and holds up nothing else."""
        try:
            self._send_message(message)
        except BrokerError as error:
            if error.code != "too_large":
                raise
            _log.error("%s: %s", message.stream, error)

    def _send_message(self, message: Message) -> None:
        state = self._ledger.get(message.stream)
        if state is None:
            return
        if message.what == "resource":
            self._send_resource(state, message.node)
        elif isinstance(state, GmJob):
            orders = (state.order,) if message.what == "order" else state.cancelled
            for order in (o for o in orders if o is not None and o.id == message.id):
                self._send_order(order, message.what)

    def _send_resource(self, state: State, node: str) -> None:
        delivery = state.deliveries[node]
        message_id = self._ledger.event_id(state.stream, delivery.version)
        if message_id is not None:
            secrets = self._secrets(state.stream)
            message = resource_message(
                self._topics, state.stream, delivery, node=node, message_id=message_id, secrets=secrets
            )
            self._publish(message)

    def _send_order(self, order: Order, what: str) -> None:
        if what == "order":
            self._publish(work_order_message(self._topics, order))
        elif self._clock.now() - datetime.fromisoformat(order.time) < _CANCEL_FOR:
            self._publish(cancel_order(self._topics, order))
