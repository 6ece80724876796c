"""What must never be in an event, a log or a topic: taken out of a resource at the door, put back on the way down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lc_events.messages.json import Json, JsonObject

__all__ = ["CREDENTIAL", "CREDENTIAL_PLACE", "MASK", "Secrets", "is_secret_name", "restore", "separate"]

CREDENTIAL = "sedna.io/credential"
"""The annotation in which Sedna's GM carries S3 credentials."""

CREDENTIAL_PLACE = f"metadata/annotations/{CREDENTIAL}"
"""Its place among the `Secrets` of a resource."""

MASK = "***"

Secrets = Mapping[str, str]
"""Place in the resource (`metadata/annotations/…`, `…/env/0/value`) to the value that was there."""

_SECRET_NAME = re.compile(r"key|secret|token|passw|credential", re.IGNORECASE)
_WHOLE_OBJECT = "kubectl.kubernetes.io/last-applied-configuration"


def is_secret_name(name: str) -> bool:
    """Whether an environment variable or annotation of this name is taken for a secret."""
    return name == _WHOLE_OBJECT or _SECRET_NAME.search(name) is not None


def separate(resource: JsonObject) -> tuple[JsonObject, Secrets]:
    """The resource with every secret replaced by `***`, and the secrets by their place.

    Annotations and environment values whose name looks like a secret's are secret; so is kubectl's copy of the object.
    """
    secrets: dict[str, str] = {}
    masked = _masked(resource, (), secrets)
    return (masked if isinstance(masked, dict) else {}), secrets


def restore(masked: JsonObject, secrets: Secrets) -> JsonObject:
    """The resource with its secrets where they were."""
    restored = _restored(masked, (), secrets)
    return restored if isinstance(restored, dict) else {}


def _masked(value: Json, path: tuple[str, ...], secrets: dict[str, str]) -> Json:
    if isinstance(value, Mapping):
        secret_fields = set(_secret_fields(value, path))
        out: dict[str, Json] = {}
        for name, item in value.items():
            if name in secret_fields and isinstance(item, str) and item != MASK:
                secrets["/".join((*path, name))] = item
                out[name] = MASK
            else:
                out[name] = _masked(item, (*path, name), secrets)
        return out
    if isinstance(value, list):
        return [_masked(item, (*path, str(index)), secrets) for index, item in enumerate(value)]
    return value


def _secret_fields(value: Mapping[str, Json], path: tuple[str, ...]) -> Iterator[str]:
    if path[-1:] == ("annotations",):
        yield from (name for name in value if is_secret_name(name))
    elif path[-2:-1] == ("env",) and is_secret_name(str(value.get("name"))):
        yield "value"


def _restored(value: Json, path: tuple[str, ...], secrets: Secrets) -> Json:
    if isinstance(value, Mapping):
        return {
            name: secrets.get("/".join((*path, name)), item)
            if item == MASK
            else _restored(item, (*path, name), secrets)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_restored(item, (*path, str(index)), secrets) for index, item in enumerate(value)]
    return value
