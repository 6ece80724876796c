"""The events as a page: what each says and which fields it stores, from the classes themselves."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from inspect import getdoc

from lc_events.domain.events import DATASET_EVENTS, JOB_EVENTS, LC_EVENTS, Event

__all__ = ["events_page"]

_HEAD = """\
# Events

Each is stored under its name, as JSON, in the `state` column of `stored_events`, and published as the `data` of a
CloudEvent of type `io.sedna.lc.NAME.v1`. Every event has `time`, its receipt: RFC 3339 in UTC with microseconds. A
field that equals its default is not stored. Ranges are `[first, last)`; `spooled` counts positions in the dataset's
spool, `rows` records of its file from 0.
"""


def events_page() -> str:
    """Markdown, one section an event."""
    return "\n".join([_HEAD, *map(_section, LC_EVENTS)])


def _section(event_class: type[Event]) -> str:
    streams = [name for name, classes in (("job", JOB_EVENTS), ("dataset", DATASET_EVENTS)) if event_class in classes]
    own = [f for f in fields(event_class) if f.name not in {"originator_id", "originator_version", "time"}]
    lines = [
        f"## {event_class.__name__}",
        "",
        f"In the stream of a {' and of a '.join(streams)}. {getdoc(event_class)}",
        "",
    ]
    if own:
        lines += ["| field | type | default |", "| --- | --- | --- |", *map(_row, own), ""]
    return "\n".join(lines)


def _row(field: Field[object]) -> str:
    default = "" if field.default is MISSING else f"`{field.default!r}`"
    return f"| `{field.name}` | `{str(field.type).replace('|', 'or')}` | {default} |"
