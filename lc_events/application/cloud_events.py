"""A stored event as the outside sees it: CloudEvents 1.0 structured JSON (CONTRACT section 6)."""

from __future__ import annotations

from base64 import b64encode

import orjson

from lc_events.application.broken import BrokenError
from lc_events.application.chain import event_id
from lc_events.application.recorder import StoredRow

__all__ = ["TYPE_PREFIX", "TYPE_SUFFIX", "cloud_event", "time_of"]

TYPE_PREFIX = "io.sedna.lc."
TYPE_SUFFIX = ".v1"

_TIME = b'{"time":"'
_STAMP = 27
"""Characters of a receipt time: RFC 3339 in UTC with microseconds."""


def cloud_event(node: str, row: StoredRow, previous_hash: str, *, raw: bool = False) -> bytes:
    """A stored row as a CloudEvent; `data` are its stored bytes, so that a hash of them can be checked.

    With `raw`, it also carries them as `stored`, base64, for whoever parses JSON and loses the bytes. Raises
    BrokenError if the bytes are no JSON object with a time.
    """
    stored = {"stored": b64encode(row.state).decode()} if raw else {}
    return orjson.dumps(
        {
            "specversion": "1.0",
            "id": event_id(node, row.stream, row.version, row.hash),
            "source": f"/sedna/{node}",
            "subject": row.stream,
            "type": f"{TYPE_PREFIX}{row.name}{TYPE_SUFFIX}",
            "time": time_of(row),
            "datacontenttype": "application/json",
            "sequence": row.version,
            "hash": row.hash,
            "prevhash": previous_hash,
            "data": orjson.Fragment(row.state),
            **stored,
        }
    )


def time_of(row: StoredRow) -> str:
    """The receipt time of a stored row; BrokenError if it has none.

    It is the first field of every event as we write it, so most rows need not be parsed for it.
    """
    end = len(_TIME) + _STAMP
    if row.state.startswith(_TIME) and row.state[end - 1 : end + 1] == b'Z"':
        return row.state[len(_TIME) : end].decode("ascii", "replace")
    try:
        time = orjson.loads(row.state)["time"]
    except (ValueError, KeyError, TypeError):
        time = None
    if not isinstance(time, str):
        raise BrokenError(row.stream, row.version, "the stored bytes are no event with a time")
    return time
