"""Sedna's manifests: YAML as kubectl reads it, several documents in one file, or a List of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from lc_events.errors import RefusedError, UsageError
from lc_events.messages.json import JsonObject, dumps, loads_object

__all__ = ["read_manifests", "read_manifests_file"]

_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_NUMBER_STARTS = list("-+0123456789.")
_WORDS = {f"{_TAG}bool", f"{_TAG}null", f"{_TAG}merge", f"{_TAG}value"}


class _Loader(yaml.SafeLoader):
    """YAML 1.1 without its traps: `24:00` is not 1440, `2024-01-01` no date, `010` not 8; a key twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(keys) != len(set(keys)):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.constructor.ConstructorError(None, None, f"{twice!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    start: kept
    for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    if (kept := [(tag, pattern) for tag, pattern in resolvers if tag in _WORDS])
}
_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(rf"\A(?:{_INT.pattern})\Z"), _NUMBER_STARTS)
_Loader.add_implicit_resolver(f"{_TAG}float", re.compile(rf"\A(?:{_FLOAT.pattern})\Z"), _NUMBER_STARTS)


def read_manifests_file(path: Path) -> list[JsonObject]:
    """The resources in a file, or in standard input for `-`; UsageError if it is unreadable, no YAML, or empty."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8") from None
    return read_manifests(text, str(path))


def read_manifests(text: str, source: str) -> list[JsonObject]:
    """The resources in a text, empty documents left out; UsageError as `read_manifests_file`, naming `source`."""
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not YAML: {' '.join(str(error).split())}") from None
    resources = [
        resource
        for number, document in enumerate(documents, 1)
        if document is not None
        for resource in _resources(document, f"{source}, document {number}")
    ]
    if not resources:
        raise UsageError(f"{source}: holds no resource")
    return resources


def _resources(document: object, where: str) -> list[JsonObject]:
    items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else [document]
    return [_as_json(item, where) for item in items] if isinstance(items, list) else []


def _as_json(document: object, where: str) -> JsonObject:
    if not isinstance(document, dict):
        raise UsageError(f"{where}: is not a resource")
    try:
        return loads_object(dumps(document))
    except (TypeError, RefusedError) as error:
        raise UsageError(f"{where}: {error}") from None
