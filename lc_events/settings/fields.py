"""The types of settings; each says in its error what is allowed."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from lc_events.errors import UsageError
from lc_events.messages.model_places import read_place
from lc_events.messages.names import is_word
from lc_events.mqtt.topics import Topics
from lc_events.settings.files import store_file
from lc_events.settings.timezone import is_zone

__all__ = [
    "FilePath",
    "Folder",
    "LogFormat",
    "LogLevel",
    "MessageBytes",
    "ModelPlaces",
    "NodeName",
    "Seconds",
    "StoreFile",
    "TopicRoot",
    "Word",
    "Words",
    "ZoneName",
    "host_name",
]

_WORD_RULE = "must be 1 to 64 of A-Z a-z 0-9 _ . -"
_MQTT_MAX_PAYLOAD = 268_435_455
"""MQTT 5, 1.5.5: the largest variable byte integer."""


def host_name() -> str:
    """The name of this machine, which is the node's unless told otherwise."""
    return socket.gethostname()


def _word(text: str) -> str:
    if not is_word(text):
        raise ValueError(_WORD_RULE)
    return text


def _node(text: str) -> str:
    if not is_word(text) or text == "gm":
        raise ValueError(f"{_WORD_RULE}, and not gm: a node's name stands in every topic")
    return text


def _topic_root(text: str) -> str:
    try:
        return Topics(text).root
    except UsageError as error:
        raise ValueError(str(error)) from None


def _folder(path: Path) -> Path:
    path = path.expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError("must be a folder")
    return path


def _zone(name: str) -> str:
    if not is_zone(name):
        raise ValueError("must be an IANA time zone, such as Europe/Berlin or UTC")
    return name


def _store(value: object) -> object:
    return store_file(value) if isinstance(value, str) else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


FilePath = Annotated[Path, AfterValidator(Path.expanduser)]
Folder = Annotated[Path, AfterValidator(_folder)]
LogFormat = Literal["text", "json"]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]
MessageBytes = Annotated[int, Field(gt=0, le=_MQTT_MAX_PAYLOAD)]
ModelPlaces = Annotated[tuple[Annotated[str, AfterValidator(read_place)], ...], BeforeValidator(_split)]
NodeName = Annotated[str, AfterValidator(_node)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
StoreFile = Annotated[Path, BeforeValidator(_store)]
TopicRoot = Annotated[str, AfterValidator(_topic_root)]
Word = Annotated[str, AfterValidator(_word)]
Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
ZoneName = Annotated[str, AfterValidator(_zone)]
