"""Reading manifests: YAML, several documents, and kubectl's List."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from lc_events.errors import UsageError
from lc_events.messages.json import JsonObject

__all__ = ["read_manifests"]


def read_manifests(file: Path) -> list[JsonObject]:
    """The resources of a file; UsageError if it cannot be read, is no YAML, or holds none."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        documents = [document for document in yaml.load_all(text, _Loader) if document is not None]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not YAML: {error}") from None
    resources: list[JsonObject] = []
    for document in documents:
        items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else [document]
        for item in items if isinstance(items, list) else []:
            if not isinstance(item, dict):
                raise UsageError(f"{file}: a manifest is a mapping, not {type(item).__name__}")
            resources.append(item)
    if not resources:
        raise UsageError(f"{file} holds no manifest")
    return resources


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: what looks like a date stays text."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 - the library's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
