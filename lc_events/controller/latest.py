"""Retained latest values of jobs and datasets: at most one publish per 100 ms and resource, ending with the newest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lc_events.application.journal import Journal
from lc_events.controller.world import World
from lc_events.domain.dataset import DatasetState
from lc_events.domain.job import JobState
from lc_events.domain.views import dataset_view, job_view
from lc_events.messages.json import dumps
from lc_events.messages.names import JOB_KIND, parts_of
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.topics import Topics

__all__ = ["LatestValues"]

_PAUSE = 0.1
_AT_ONCE = 3


class LatestValues:
    """Which resources changed since their values were published; the caller's lock guards `changed` and `due_in`."""

    def __init__(self, *, world: World, journal: Journal, topics: Topics, node: str) -> None:
        self._world = world
        self._journal = journal
        self._topics = topics
        self._node = node
        self._changed: dict[str, float] = {}
        self._published: dict[str, float] = {}
        self._payloads: dict[str, bytes] = {}
        self._forced: set[str] = set()

    def changed(self, stream: str) -> None:
        """A resource has new values."""
        self._changed.setdefault(stream, self._published.get(stream, float("-inf")) + _PAUSE)

    def again(self, stream: str) -> None:
        """Somebody waits for the values of a resource, whether they changed or not."""
        self._forced.add(stream)
        self.changed(stream)

    def all_changed(self) -> None:
        """The broker may have lost them all."""
        self._payloads.clear()
        for stream in self._world.streams():
            self.changed(stream)

    def due_in(self, now: float) -> float | None:
        """Seconds until the next publish is due, 0 if it is; None if nothing changed."""
        return max(0.0, min(self._changed.values()) - now) if self._changed else None

    def take_due(self, now: float) -> Iterator[Publication]:
        """Publications that are due; one that equals what was published last on its topic is left out.

        Only of a few resources, for many become due together, and reports must not wait behind all of them: call again
        while `due_in` is 0. Where the store cannot be read, the resource stays due.
        """
        due = (stream for stream, moment in list(self._changed.items()) if moment <= now)
        for stream in islice(due, _AT_ONCE):
            self._changed.pop(stream, None)
            self._published[stream] = now
            try:
                values = list(self._values(stream))
            except Exception:
                self.changed(stream)
                raise
            is_forced = stream in self._forced
            self._forced.discard(stream)
            for publication in values:
                if is_forced or self._payloads.get(publication.topic) != publication.payload:
                    self._payloads[publication.topic] = publication.payload
                    yield publication

    def _values(self, stream: str) -> Iterator[Publication]:
        namespace, kind, name = parts_of(stream)
        state = self._world.get(stream)
        if stream in self._world.broken:
            return
        if kind == JOB_KIND:
            job = state if isinstance(state, JobState) and state.is_live else None
            yield self._retained(
                self._topics.state_job(self._node, namespace, name), None if job is None else job_view(job, self._node)
            )
            yield self._retained(
                self._topics.state_model(self._node, namespace, name), None if job is None else job.model
            )
            if isinstance(state, JobState):
                value = {"version": state.version, "hash": self._hash(state), "time": state.updated}
                yield self._retained(self._topics.state_head(self._node, namespace, name), value)
        else:
            dataset = state if isinstance(state, DatasetState) and state.is_live else None
            yield self._retained(
                self._topics.state_dataset(self._node, namespace, name),
                None if dataset is None else dataset_view(dataset),
            )

    def _hash(self, state: JobState) -> str:
        """The hash of a state's last event: the head's, unless a commit has just gone ahead of the state."""
        rows = self._journal.rows
        head = rows.head(state.stream)
        if head.version == state.version:
            return head.hash
        return rows.hashes(state.stream, [state.version])[state.version]

    @staticmethod
    def _retained(topic: str, value: object) -> Publication:
        return Publication(topic, b"" if value is None else dumps(value), retain=True)
