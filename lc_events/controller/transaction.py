"""What one piece of work wants to save, and what is to be done once it is saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from lc_events.application.recorder import Known
from lc_events.controller.world import State, World, dataset_stream, fresh
from lc_events.domain.dataset import DatasetState
from lc_events.domain.events import Event
from lc_events.domain.job import JobState, output_place
from lc_events.errors import RefusedError

__all__ = ["Batch", "Transaction", "Work"]


class Batch:
    """Everything that goes into one commit: the events of many pieces of work, in the order they were taken."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: list[Event] = []
        self.states: dict[str, State] = {}
        self.known: list[Known] = []
        self.known_keys: set[tuple[str, str]] = set()
        self.known_of: defaultdict[str, list[Known]] = defaultdict(list)
        self.after: list[Callable[[], None]] = []

    def take(self, transaction: Transaction) -> None:
        """Take in what a piece of work decided."""
        self.events += transaction.events
        self.states.update(transaction.states)
        self.known += transaction.known
        for known in transaction.known:
            self.known_keys.add((known.scope, known.key))
            self.known_of[known.scope].append(known)
        self.after += transaction.after


class Transaction:
    """One piece of work's view: states as the work before it left them, and its own decisions; all or nothing.

    A stream whose history cannot be read is refused (code `integrity`): it must not begin anew at version 1.
    """

    def __init__(self, batch: Batch) -> None:
        self.events: list[Event] = []
        self.states: dict[str, State] = {}
        self.known: list[Known] = []
        self.after: list[Callable[[], None]] = []
        self._batch = batch

    def job(self, stream: str) -> JobState:
        """A job as it stands now, empty if it has no event yet; RefusedError if its history cannot be read."""
        state = self._state(stream)
        if not isinstance(state, JobState):
            raise TypeError(f"{stream} is no job")
        return state

    def dataset(self, stream: str) -> DatasetState:
        """A dataset as it stands now, empty if it has no event yet; RefusedError if its history cannot be read."""
        state = self._state(stream)
        if not isinstance(state, DatasetState):
            raise TypeError(f"{stream} is no dataset")
        return state

    def note_of(self, dataset: str | None) -> str | None:
        """What keeps the jobs of a dataset from getting samples, in words."""
        if dataset is None:
            return None
        broken = self._batch.world.broken.get(dataset)
        return self.dataset(dataset).note if broken is None else str(broken)

    def is_broken(self, stream: str) -> bool:
        """Whether the history of a stream cannot be read."""
        return stream in self._batch.world.broken

    def _state(self, stream: str) -> State:
        if (error := self._batch.world.broken.get(stream)) is not None:
            raise RefusedError(f"{error}; nothing is taken in for it until its history is restored", code="integrity")
        return (
            self.states.get(stream) or self._batch.states.get(stream) or self._batch.world.get(stream) or fresh(stream)
        )

    def jobs_of(self, dataset: str) -> list[JobState]:
        """The live jobs that learn from a dataset, those decided in this batch included, by name."""
        streams = set(self._batch.world.jobs_of(dataset))
        streams.update(s for states in (self._batch.states, self.states) for s in states)
        jobs = (self._state(stream) for stream in sorted(streams))
        return [j for j in jobs if isinstance(j, JobState) and j.is_live and dataset_stream(j) == dataset]

    def live_jobs(self) -> list[JobState]:
        """All live jobs, those decided in this batch included."""
        streams = {*self._batch.world.streams(), *self._batch.states, *self.states} - set(self._batch.world.broken)
        states = (self._state(stream) for stream in sorted(streams))
        return [state for state in states if isinstance(state, JobState) and state.is_live]

    def owner_of(self, output_dir: str) -> str | None:
        """The live job that writes to an output URL's folder, those decided in this batch included."""
        place = output_place(output_dir)

        def writes_there(state: State) -> bool:
            return isinstance(state, JobState) and state.is_live and output_place(state.output_dir) == place

        for states in (self.states, self._batch.states):
            for stream, state in states.items():
                if writes_there(state):
                    return stream
        committed = self._batch.world.owner_of(output_dir)
        if committed is None:
            return None
        return committed if writes_there(self._state(committed)) else None

    def keep(self, decision: tuple[Sequence[Event], State]) -> bool:
        """Take in a decision; whether it held any event."""
        events, state = decision
        self.events += events
        if events:
            self.states[state.stream] = state
        return bool(events)

    def know(self, known: Known) -> None:
        """Remember a message with the commit."""
        self.known.append(known)

    def is_known(self, scope: str, key: str) -> bool:
        """Whether a message was taken in before; its pair must have been named by `Work.announced`."""
        return (scope, key) in self._batch.known_keys

    def recent(self, scope: str) -> Sequence[Known]:
        """What this batch took in of a scope."""
        return self._batch.known_of[scope]

    def then(self, callback: Callable[[], None]) -> None:
        """Do something once this is on disk."""
        self.after.append(callback)


class Work(Protocol):
    """Something for the committer."""

    def announced(self) -> Collection[tuple[str, str]]:
        """The (scope, key) pairs whose being known decides; they are looked up for many pieces of work at once."""
        ...

    def carry_out(self, transaction: Transaction) -> None:
        """Decide. Called again with a new transaction if the commit failed and what it rested on has changed."""
        ...

    def failed(self, error: Exception) -> None:
        """A defect of ours kept this from being decided: tell whoever waits, so that nothing hangs on it."""
        ...
