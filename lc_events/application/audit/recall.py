"""What a history says around one state of a job, looked up by name and version, not read from the beginning."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from lc_events.application.audit import wording
from lc_events.application.audit.archive import Archive
from lc_events.application.audit.silence import Silence, dataset_at, silence
from lc_events.application.cloud_events import time_of
from lc_events.application.given_up import given_up
from lc_events.domain import events as e
from lc_events.domain.dataset import DatasetState
from lc_events.domain.job import JobState
from lc_events.domain.stamp import stamp
from lc_events.messages.json import JsonObject
from lc_events.messages.names import DATASET_KIND, stream_id

__all__ = ["Recall", "Standing"]

E = TypeVar("E", bound=e.Event)

_NO_FACTS: JsonObject = {}
_MOST_REPEATS = 100
"""Messages of GM without news that are passed over."""


class Standing(NamedTuple):
    """Where a job stands, in a sentence; what it waits for, since when; and further facts."""

    sentence: str
    waits_for: str
    since: str | None = None
    facts: JsonObject = _NO_FACTS


class Recall:
    """One state of a job, seen at `time`, and what was recorded up to it."""

    def __init__(self, archive: Archive[Any], state: JobState, time: str) -> None:
        self.state = state
        self.time = time
        self.moment = datetime.fromisoformat(time)
        self._archive = archive

    def clock(self, time: str) -> str:
        """A recorded time as a sentence names it: `at 03:20 yesterday`."""
        return wording.clock(datetime.fromisoformat(time), self.moment, self.state.zone)

    def length_since(self, time: str | None) -> str:
        """How long ago something was: `3 h 20 min`."""
        return "an unknown time" if time is None else wording.length(self.moment - datetime.fromisoformat(time))

    def time_of(self, version: int) -> str | None:
        """The receipt time of a version."""
        rows = self._archive.rows(self.state.stream, first=version, last=version)
        return time_of(rows[0]) if rows else None

    def newest(self, event_class: type[E], *, until: int | None = None) -> E | None:
        """The newest event of a class, up to this state or an earlier version."""
        row = self._archive.journal.rows.newest(
            self.state.stream, [event_class.__name__], lte=self.state.version if until is None else until
        )
        event = None if row is None else self._archive.journal.decode(row)
        return event if isinstance(event, event_class) else None

    def given_up(self) -> e.TriggerFailed | None:
        """The newest model that was given up, if none is deployed since."""
        return given_up(self._archive.journal, self.state.stream, until=self.state.version)

    def dataset(self) -> DatasetState | None:
        """The job's dataset as it was then; None if there was none."""
        stream = stream_id(self.state.namespace, DATASET_KIND, str(self.state.dataset_name))
        return dataset_at(self._archive, stream, self.time)

    def silence(self) -> Silence | None:
        """What kept that dataset from giving samples; None if nothing did."""
        return silence(self._archive, self.dataset())

    def condition_since(self) -> str | None:
        """When GM sent the condition at which the job stands."""
        version = self.state.version
        for _ in range(_MOST_REPEATS):
            message = self.newest(e.GlobalManagerMessageReceived, until=version)
            if message is None or message.conditions:
                return None if message is None else message.time
            version = message.originator_version - 1
        return None

    def state_at(self, moment: datetime) -> JobState | None:
        """The state that held at an earlier moment; None if the history began later."""
        until, _ = self._archive.journal.rows.versions_by_time(self.state.stream, stamp(moment))
        earlier = [version for version in until if version <= self.state.version]
        state = self._archive.state(self.state.stream, earlier[-1]) if earlier else None
        return state if isinstance(state, JobState) else None
