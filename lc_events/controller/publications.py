"""What an event becomes outside: an upstream report, a worker's `done`, a CloudEvent. Made of the event alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lc_events.application.chain import event_id
from lc_events.application.cloud_events import cloud_event
from lc_events.application.recorder import StoredRow
from lc_events.domain import events as e
from lc_events.messages.gm import up
from lc_events.messages.json import Json, JsonObject
from lc_events.messages.names import JOB_KIND, parts_of
from lc_events.messages.worker import done
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.topics import Topics

__all__ = ["Publications"]

E = TypeVar("E", bound=e.Event)
_REPORTS: dict[type[e.Event], Callable[[e.Event], JsonObject | None]] = {}


class Publications:
    """Topics and payloads of one node's events."""

    def __init__(self, node: str, topics: Topics) -> None:
        self._node = node
        self._topics = topics

    def report(self, row: StoredRow, event: e.Event) -> Publication | None:
        """The upstream status that an event causes, under the event's id; None if it causes none."""
        make = _REPORTS.get(type(event))
        content = None if make is None else make(event)
        if content is None:
            return None
        namespace, kind, name = parts_of(row.stream)
        payload = up(
            event_id(self._node, row.stream, row.version, row.hash),
            kind=str(getattr(event, "resource_kind")),  # noqa: B009 - every event that reports has it
            namespace=namespace,
            name=name,
            content=content,
        )
        return Publication(self._topics.up(self._node, kind, namespace, name), payload)

    @staticmethod
    def is_urgent(name: str) -> bool:
        """Whether events of this name may cause more than their CloudEvent."""
        return name in _URGENT

    def done(self, event: e.Event) -> Publication | None:
        """The `done` for the worker whose message the event settles."""
        if isinstance(event, (e.WorkerResultReceived, e.DuplicateReceived)) and event.worker is not None:
            return Publication(self._topics.worker_done(self._node, event.worker), done(event.id))
        return None

    def cloud_event(self, row: StoredRow, previous_hash: str) -> Publication:
        """The event as CloudEvents 1.0 structured JSON (CONTRACT section 6)."""
        namespace, kind, name = parts_of(row.stream)
        topic = self._topics.event_job if kind == JOB_KIND else self._topics.event_dataset
        return Publication(topic(self._node, namespace, name), cloud_event(self._node, row, previous_hash))


def _on(event_class: type[E], report: Callable[[E], JsonObject | None]) -> None:
    _REPORTS[event_class] = report  # type: ignore[assignment]


def _job(phase: str, status: str, given: JsonObject | None = None) -> JsonObject:
    content: dict[str, Json] = {"phase": phase, "status": status}
    if given is not None:
        content["input"] = given
    return {**content, "output": None}


_on(e.TrainDataWritten, lambda event: _job("Train", "Ready", event.input))
_on(e.EvalDataWritten, lambda event: _job("Eval", "Ready", event.input))
_on(e.DeployTriggered, lambda event: _job("Deploy", "Completed") if event.model is None else None)
_on(e.ModelDeployed, lambda event: _job("Deploy", "Ready", {"models": [event.model]}))
_on(
    e.TriggerFailed,
    lambda event: _job("Deploy", "Failed", {"models": [event.model]}) if event.final else None,
)
_on(
    e.WorkerResultReceived,
    lambda event: {
        "phase": event.kind,
        "status": event.status,
        "output": {"models": event.results, "ownerInfo": event.owner_info},
    },
)
_on(
    e.DatasetObserved,
    lambda event: {"numberOfSamples": event.records} if event.rows[0] != event.rows[1] else None,
)
_on(e.DatasetReset, lambda event: {"numberOfSamples": event.records})

_URGENT = {event_class.__name__ for event_class in (*_REPORTS, e.DuplicateReceived)}
