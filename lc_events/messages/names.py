"""The names that may stand in a topic, a stream or a path; anything else is refused at the door."""

from __future__ import annotations

import re

__all__ = [
    "DATASET_KIND",
    "JOB_KIND",
    "OfStream",
    "Stream",
    "is_namespace",
    "is_resource_name",
    "is_word",
    "kind_of",
    "parts_of",
    "stream_id",
]

JOB_KIND = "lifelonglearningjob"
DATASET_KIND = "dataset"

Stream = str
"""`NAMESPACE/KIND/NAME`, the originator id of an aggregate."""

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def is_word(text: str) -> bool:
    """Whether `text` may name a node, worker, asker or user: no `+ # /`, which have been security holes."""
    return _WORD.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Whether `text` is an RFC 1123 label, as Kubernetes wants of a namespace."""
    return _NAMESPACE.fullmatch(text) is not None


def is_resource_name(text: str) -> bool:
    """Whether `text` is an RFC 1123 subdomain of at most 253 characters, as Kubernetes wants of an object's name."""
    return len(text) <= 253 and _NAME.fullmatch(text) is not None


def stream_id(namespace: str, kind: str, name: str) -> Stream:
    """The stream of a resource; the parts hold no `/`, so it can be split again."""
    return f"{namespace}/{kind}/{name}"


def parts_of(stream: Stream) -> tuple[str, str, str]:
    """Namespace, kind and name of a stream."""
    namespace, kind, name = stream.split("/")
    return namespace, kind, name


def kind_of(stream: Stream) -> str:
    """The kind of resource that a stream is of."""
    return stream.split("/")[1]


class OfStream:
    """Namespace and name of a state, from its `stream`: for the dataclasses that states are."""

    __slots__ = ()

    stream: Stream

    @property
    def namespace(self) -> str:
        """The resource's namespace."""
        return self.stream.split("/")[0]

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.stream.split("/")[2]
