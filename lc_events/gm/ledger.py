"""All jobs and datasets as they were last committed, and the store under them. For one thread."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from lc_events.application.chain import event_id
from lc_events.application.journal import Journal
from lc_events.application.links import linked
from lc_events.application.recorder import Known
from lc_events.domain.events import Event
from lc_events.errors import IntegrityError, RefusedError
from lc_events.gm.dataset import GmDataset, fold_dataset
from lc_events.gm.job import GmJob, fold_job
from lc_events.messages.names import DATASET_KIND, JOB_KIND, Stream, kind_of

__all__ = ["SOURCE", "Changes", "Ledger", "State", "fold_stream"]

State = GmJob | GmDataset

SOURCE = "gm"
"""What stands where an LC's event ids name its node; no node may be called so."""

_KEPT_KNOWN = 100_000
_EVENT_ID = re.compile(rf"{SOURCE}/([^/]+/([^/]+)/[^/]+)/([1-9][0-9]{{0,17}})-[0-9a-f]{{12}}")

_log = logging.getLogger("lc_events.gm")


class Changes:
    """What one message changes, all or nothing: each decision sees what the one before left."""

    def __init__(self, ledger: Ledger) -> None:
        self.events: list[Event] = []
        self.states: dict[Stream, State] = {}
        self.known: list[Known] = []
        self._ledger = ledger

    def job(self, stream: Stream) -> GmJob:
        """A job as it stands now, empty if it has no event yet; RefusedError if its history cannot be read."""
        state = self.states.get(stream) or self._ledger.get(stream) or GmJob(stream)
        if not isinstance(state, GmJob):
            raise TypeError(f"{stream} is no job")
        return state

    def dataset(self, stream: Stream) -> GmDataset:
        """A dataset as it stands now; otherwise as `job`."""
        state = self.states.get(stream) or self._ledger.get(stream) or GmDataset(stream)
        if not isinstance(state, GmDataset):
            raise TypeError(f"{stream} is no dataset")
        return state

    def of(self, stream: Stream) -> State:
        """The job or dataset of a stream."""
        return self.job(stream) if kind_of(stream) == JOB_KIND else self.dataset(stream)

    def keep(self, decision: tuple[list[Event], State]) -> bool:
        """Take in a decision; whether it held any event."""
        events, state = decision
        self.events += events
        if events:
            self.states[state.stream] = state
        return bool(events)


class Ledger:
    """The states in memory are folds of what is on disk, and are replaced only once a commit has succeeded."""

    def __init__(self, journal: Journal) -> None:
        """IntegrityError if the data base is damaged; a single stream that cannot be read is left out and logged."""
        if (complaint := journal.rows.quick_check()) is not None:
            raise IntegrityError(f"the event store {journal.path} is damaged: {complaint}; restore it from a backup")
        self._journal = journal
        self._states: dict[Stream, State] = {}
        self.broken: set[Stream] = set()
        for stream, rows in groupby(journal.rows.scan(), key=lambda row: row.stream):
            try:
                self._states[stream] = fold_stream(stream, map(journal.decode, linked(stream, rows)))
            except IntegrityError as error:
                self.broken.add(stream)
                _log.error("%s is left alone: %s", stream, error)

    def get(self, stream: Stream) -> State | None:
        """The committed state of a stream; RefusedError `integrity` if its history cannot be read."""
        if stream in self.broken:
            raise RefusedError(f"the history of {stream} cannot be read; see the log", code="integrity")
        return self._states.get(stream)

    def states(self) -> Iterator[State]:
        """All states, deleted ones too."""
        return iter(list(self._states.values()))

    def jobs_of(self, dataset: GmDataset) -> list[GmJob]:
        """The live jobs that learn from a dataset."""
        return [
            state
            for state in self._states.values()
            if isinstance(state, GmJob)
            and state.is_live
            and (state.namespace, state.dataset_name) == (dataset.namespace, dataset.name)
        ]

    def commit(self, changes: Changes) -> None:
        """Save what a message changed; StoreError if nothing was saved, and then nothing has changed here either."""
        if changes.events or changes.known:
            self._journal.record(changes.events, known=changes.known)
        self._states.update(changes.states)

    def is_known(self, scope: str, key: str) -> bool:
        """Whether a message was taken in before."""
        return bool(self._journal.rows.known_keys([(scope, key)]))

    def newest_known(self, scope: str, limit: int) -> list[Known]:
        """The newest messages of a scope, the newest first."""
        return self._journal.rows.newest_known(scope, limit)

    def forget_known(self, before: float) -> None:
        """Drop known messages older than `before` (seconds since the epoch), but none of the newest 100,000."""
        self._journal.rows.forget_known(before=before, keep=_KEPT_KNOWN)

    def event_id(self, stream: Stream, version: int) -> str | None:
        """The id of an event, which is that of the message it causes; None if there is no such event."""
        rows = self._journal.rows.rows(stream=stream, gt=version - 1, lte=version)
        return event_id(SOURCE, stream, version, rows[0].hash) if rows else None

    def read_id(self, text: str) -> tuple[Stream, int] | None:
        """Stream and version of an id of ours; None for any other, such as one of a store that was lost."""
        match = _EVENT_ID.fullmatch(text)
        if match is None or match[2] not in (JOB_KIND, DATASET_KIND):
            return None
        version = int(match[3])
        return (match[1], version) if self.event_id(match[1], version) == text else None


def fold_stream(stream: Stream, events: Iterable[Event]) -> State:
    """The state of a job or a dataset, by the kind in the stream's name."""
    return fold_job(stream, events) if kind_of(stream) == JOB_KIND else fold_dataset(stream, events)
