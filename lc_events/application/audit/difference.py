"""What changed of a state between two versions, field by field, and the events that did it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lc_events.application.audit.archive import Archive
from lc_events.errors import UsageError
from lc_events.messages.json import Json, JsonObject

__all__ = ["By", "Change", "difference"]

_ALWAYS = ("version", "updated")
"""What every event changes."""


class By(NamedTuple):
    """An event that changed a field."""

    version: int
    name: str
    time: str


class Change(NamedTuple):
    """A field of the job state, by its path (`samples.seen`), before and after, and who changed it in between."""

    field: str
    before: Json
    after: Json
    by: tuple[By, ...]

    def to_json(self) -> JsonObject:
        """Keys `field`, `from`, `to`, `by`."""
        by: list[Json] = [each._asdict() for each in self.by]
        return {"field": self.field, "from": self.before, "to": self.after, "by": by}


def difference(archive: Archive[Any], stream: str, first: int, last: int) -> list[Change]:
    """The fields that are not the same after version `last` as after version `first` (0: before the first event).

    Raises UsageError if `last` does not come after `first`, NotFoundError for versions that are not there.
    """
    if first >= last:
        raise UsageError(f"version {last} does not come after version {first}")
    archive.check_version(stream, last)
    state = archive.state(stream, first) if first else archive.kind.fresh(stream)
    before = fields = dict(_flat(archive.view(state)))
    by: dict[str, list[By]] = {}
    for event in archive.journal.stream(stream, gt=first, lte=last):
        state = archive.kind.evolve(state, event)
        after = dict(_flat(archive.view(state)))
        for name in fields | after:
            if fields.get(name) != after.get(name):
                by.setdefault(name, []).append(By(event.originator_version, type(event).__name__, event.time))
        fields = after
    names = (name for name in before | fields if name not in _ALWAYS and before.get(name) != fields.get(name))
    return [Change(name, before.get(name), fields.get(name), tuple(by[name])) for name in names]


def _flat(value: JsonObject, path: str = "") -> Iterator[tuple[str, Json]]:
    """Leaves by their paths; lists are leaves."""
    for name, part in value.items():
        if isinstance(part, Mapping) and part:
            yield from _flat(part, f"{path}{name}.")
        else:
            yield f"{path}{name}", part
