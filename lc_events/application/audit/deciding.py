"""Which decisions a local controller's streams hold: those of jobs, those of datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lc_events.application.audit.dataset_decisions import DatasetDecisions
from lc_events.application.audit.derivation import Derivation
from lc_events.application.audit.job_decisions import JobDecisions
from lc_events.domain.dataset import DatasetState
from lc_events.domain.events import LC_EVENTS, Event, Registry
from lc_events.domain.job import JobState
from lc_events.messages.names import JOB_KIND, kind_of

__all__ = ["follow_controller"]

_REGISTRY = Registry(LC_EVENTS)


def follow_controller(stream: str, events: Iterable[Event], notes: list[str]) -> Iterator[Event]:
    """Decide again what was decided; see `archive.Follow`."""
    derivation: Derivation[Any]
    if kind_of(stream) == JOB_KIND:
        derivation = Derivation(stream, JobState(stream), JobDecisions(), _REGISTRY, notes)
    else:
        derivation = Derivation(stream, DatasetState(stream), DatasetDecisions(), _REGISTRY, notes)
    return derivation.follow(events)
