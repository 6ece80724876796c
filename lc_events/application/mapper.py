"""Events to stored bytes and back: stable names as topics, compact JSON as state, upcasting of older versions."""

from __future__ import annotations

from typing import Any

import orjson
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import JSONTranscoder, Mapper, StoredEvent

from lc_events.application.broken import BrokenError
from lc_events.domain.events import Event, Registry

__all__ = ["EventMapper"]


class EventMapper(Mapper[str]):
    """The library's mapper with our names and orjson; the stored JSON holds what differs from a field's default.

    A class whose `class_version` is above 1 has static methods `upcast_v1_v2(state: dict)`, as the library's own.
    """

    def __init__(self, registry: Registry) -> None:
        super().__init__(transcoder=JSONTranscoder())
        self._registry = registry

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """Name and bytes of an event; TypeError if it holds what JSON cannot."""
        if not isinstance(domain_event, Event):
            raise TypeError(f"{type(domain_event).__name__} is not an event of this store")
        state = self._registry.stored(domain_event)
        if domain_event.class_version > 1:
            state["class_version"] = domain_event.class_version
        return StoredEvent(
            domain_event.originator_id,
            domain_event.originator_version,
            type(domain_event).__name__,
            orjson.dumps(state),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Event:
        """The event that was stored; BrokenError if its name or fields are not known to this version."""
        return self.decode(
            str(stored_event.originator_id), stored_event.originator_version, stored_event.topic, stored_event.state
        )

    def decode(self, stream: str, version: int, name: str, state: bytes) -> Event:
        """The event of a stored row; BrokenError as `to_domain_event`."""
        try:
            event_class = self._registry[name]
            values: dict[str, Any] = orjson.loads(state)
            if event_class.class_version > 1:
                for old in range(values.pop("class_version", 1), event_class.class_version):
                    getattr(event_class, f"upcast_v{old}_v{old + 1}")(values)
            return event_class(originator_id=stream, originator_version=version, **values)
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenError(stream, version, f"{name[:80]!r} cannot be read: {error}") from None
