"""JSON as we accept it: finite floats, 64-bit integers, bounded depth; what comes in can always be written again."""

from __future__ import annotations

import json as stdlib_json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import orjson

from lc_events.errors import RefusedError

__all__ = ["INT64_MAX", "UINT64_MAX", "Json", "JsonObject", "dumps", "loads", "loads_object"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = "Mapping[str, Json]"

INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1

_INT64_MIN = -(2**63)
_MAX_DEPTH = 64
_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def loads(payload: bytes | str, *, max_integer: int = INT64_MAX) -> Json:
    """Parse UTF-8 JSON; RefusedError `malformed` if it is not JSON, too deep, or holds a number that would not be kept.

    orjson refuses infinite numbers itself, but turns integers beyond 64 bits into floats: these are refused here.
    """
    try:
        value: Json = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise RefusedError(f"not JSON: {error}") from None
    _check_depth(value, _MAX_DEPTH)
    raw = payload.encode() if isinstance(payload, str) else payload
    if _LONG_NUMBER.search(raw):
        _check_integers(raw, max_integer)
    return value


def loads_object(payload: bytes | str, *, max_integer: int = INT64_MAX) -> JsonObject:
    """Parse a JSON object; RefusedError as `loads`, and for any other JSON value."""
    value = loads(payload, max_integer=max_integer)
    if not isinstance(value, dict):
        raise RefusedError("the payload is JSON, but not an object")
    return value


def dumps(value: object) -> bytes:
    """Write compact UTF-8 JSON in the order of the keys given."""
    return orjson.dumps(value)


def _check_integers(raw: bytes, max_integer: int) -> None:
    def checked(digits: str) -> int:
        if len(digits) > 20 or not _INT64_MIN <= int(digits) <= max_integer:
            raise RefusedError(f"the integer {digits[:24]} does not fit into 64 bits")
        return int(digits)

    stdlib_json.loads(raw, parse_int=checked)


def _check_depth(value: object, depth: int) -> None:
    if isinstance(value, dict):
        children = value.values()
    elif isinstance(value, list):
        children = value  # type: ignore[assignment]
    else:
        return
    if not depth:
        raise RefusedError(f"nested deeper than {_MAX_DEPTH} levels")
    for child in children:
        if isinstance(child, (dict, list)):
            _check_depth(child, depth - 1)
