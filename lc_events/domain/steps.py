"""Building a decision: events made one after another, each seeing the state that the one before left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from lc_events.domain.events import Event

__all__ = ["Steps"]


class _Versioned(Protocol):
    @property
    def stream(self) -> str: ...
    @property
    def version(self) -> int: ...


S = TypeVar("S", bound=_Versioned)
E = TypeVar("E", bound=Event)


class Steps(Generic[S]):
    """The events decided so far, and the state after them; `now` is the receipt that all of them carry."""

    def __init__(self, state: S, now: str, evolve: Callable[[S, Event], S]) -> None:
        self.state = state
        self.events: list[Event] = []
        self._now = now
        self._evolve = evolve

    @property
    def now(self) -> str:
        """The receipt time of the command."""
        return self._now

    def make(self, event_class: Callable[..., E], /, **values: object) -> E:
        """The next event of the stream, not yet part of the decision."""
        return event_class(
            originator_id=self.state.stream, originator_version=self.state.version + 1, time=self._now, **values
        )

    def push(self, event: Event) -> None:
        """Take an event into the decision."""
        self.state = self._evolve(self.state, event)
        self.events.append(event)

    def add(self, event_class: Callable[..., Event], /, **values: object) -> None:
        """Make an event and take it in."""
        self.push(self.make(event_class, **values))

    def after(self, event: Event) -> S:
        """The state as it would be after `event`."""
        return self._evolve(self.state, event)
