"""Deciding again: every recorded decision must be what the domain decides on the facts recorded before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import orjson

from lc_events.application.broken import DEFECTS, BrokenError, misfit
from lc_events.domain.events import RULES, Event, Registry

__all__ = ["Decided", "Derivation", "Subject"]

S = TypeVar("S")

Decided = tuple[list[Event], S]
"""What a command gives: its events, and the state after them."""


class Subject(Protocol[S]):
    """A kind of stream whose decisions can be derived."""

    def decide(self, state: S, event: Event, following: Event | None) -> Decided[S] | None:
        """What the command behind `event` gives today, `event` first.

        None for an event that no command gives by itself; an empty list where the command would have been refused, or
        would have decided nothing.
        """
        ...

    def evolve(self, state: S, event: Event) -> S:
        """The fold."""
        ...

    def is_same(self, derived: Event, recorded: Event) -> bool:
        """Whether they differ only where no decision rests on it, or where it cannot be derived."""
        ...


class Derivation(Generic[S]):
    """Follows one stream; `notes` say what could not be checked.

    Events that one command gave were saved together, so a decision that was cut short is found, too.
    """

    def __init__(self, stream: str, state: S, subject: Subject[S], registry: Registry, notes: list[str]) -> None:
        self.state = state
        self.notes = notes
        self._stream = stream
        self._subject = subject
        self._registry = registry
        self._expected: deque[Event] = deque()
        self._after: S | None = None
        self._saved_together: list[Event] = []

    def follow(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events as long as each follows; raises BrokenError at the first that does not, or at a missing one."""
        version = 0
        for event, following in _with_following(events):
            try:
                self._take(event, following)
            except DEFECTS as error:
                raise misfit(self._stream, event.originator_version, error) from error
            version = event.originator_version
            yield event
        if self._expected:
            raise BrokenError(self._stream, version + 1, f"it is missing: {_named(self._expected[0])} follows")

    def _take(self, event: Event, following: Event | None) -> None:
        if not 1 <= rules_of(event) <= RULES:
            self._note(event)
            self._expected.clear()
            self._after = None
        elif self._expected:
            self._compare(self._expected.popleft(), event)
        else:
            self._begin(event, following)
        self._saved_together.append(event)
        if not self._expected:
            self._settle()

    def _settle(self) -> None:
        """The state after a command: as it was decided, or the fold of what was recorded where that may differ."""
        if self._after is not None:
            self.state = self._after
        else:
            for event in self._saved_together:
                self.state = self._subject.evolve(self.state, event)
        self._after = None
        self._saved_together.clear()

    def _begin(self, event: Event, following: Event | None) -> None:
        decided = self._subject.decide(self.state, event, following)
        if decided is None:
            raise self._broken(event, f"nothing before it calls for a {_named(event)}")
        events, self._after = decided
        if not events:
            raise self._broken(event, f"where the history stood, no {_named(event)} was possible")
        self._expected.extend(events[1:])
        self._compare(events[0], event)

    def _compare(self, derived: Event, recorded: Event) -> None:
        """Raises BrokenError unless they are the same, as `Subject.is_same` judges."""
        if derived == recorded:
            return
        if type(derived) is not type(recorded):
            raise self._broken(recorded, f"the facts before it call for a {_named(derived)}, not a {_named(recorded)}")
        if self._subject.is_same(derived, recorded):
            self._after = None
            return
        ours, theirs = self._stored(derived), self._stored(recorded)
        if differing := [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]:
            raise self._broken(recorded, f"a {_named(recorded)} that does not follow: {_told(differing, theirs, ours)}")

    def _stored(self, event: Event) -> dict[str, object]:
        """The fields as they come back from disk, where tuples have become lists."""
        fields: dict[str, object] = orjson.loads(orjson.dumps(self._registry.stored(event)))
        return fields

    def _note(self, event: Event) -> None:
        rules = rules_of(event)
        note = f"version {event.originator_version}: decided under rules {rules}, which this program does not have"
        if not self.notes or not self.notes[-1].endswith(f"rules {rules}, which this program does not have"):
            self.notes.append(note)

    def _broken(self, event: Event, fault: str) -> BrokenError:
        return BrokenError(self._stream, event.originator_version, fault)


def rules_of(event: Event) -> int:
    """The rules that a decision or verdict names."""
    rules = getattr(event, "rules", RULES)
    return rules if isinstance(rules, int) else RULES


def _told(fields: Iterable[str], recorded: dict[str, object], derived: dict[str, object]) -> str:
    return "; ".join(
        f"{name} is {_shown(recorded.get(name))}, but its facts give {_shown(derived.get(name))}" for name in fields
    )


def _shown(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:80]}…"


def _named(event: Event) -> str:
    return type(event).__name__


def _with_following(events: Iterable[Event]) -> Iterator[tuple[Event, Event | None]]:
    rest = iter(events)
    event = next(rest, None)
    while event is not None:
        following = next(rest, None)
        yield event, following
        event = following
