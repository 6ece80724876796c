"""A refused message for people's eyes: readable as far as it goes, with its secrets taken out."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

import orjson

from lc_events.messages.json import Json
from lc_events.messages.secrets import MASK, is_secret_name, separate

__all__ = ["shown"]

_LONGEST = 4000
_NAMED = re.compile(
    r"(?i)([\w./-]*(?:key|secret|token|passw|credential)[\w./-]*[\"']?\s*[:=,]\s*(?:[\"']?value[\"']?\s*[:=]\s*)?)"
    r"(\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|[^\s,;}\]]+)"
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")


def shown(payload: bytes) -> Json:
    """The JSON of a payload without secrets, base64 content decoded; of what is no JSON, masked text, cut short."""
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return _masked_text(payload.decode("utf-8", "backslashreplace"))
    if isinstance(value, dict) and isinstance(content := value.get("content"), str):
        value = {**value, "content": _decoded(content)}
    return _masked(value)


def _decoded(content: str) -> Json:
    """Sedna's websocket form; a string that is something else might hold anything."""
    try:
        found: Json = orjson.loads(base64.b64decode(content, validate=True))
    except (binascii.Error, orjson.JSONDecodeError):
        return _masked_text(content)
    return found


def _masked(value: Json) -> Json:
    masked, _ = separate({"shown": value})
    return _by_name(masked["shown"])


def _by_name(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {
            name: MASK if is_secret_name(name) and isinstance(item, str) else _by_name(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_by_name(item) for item in value]
    return value


def _masked_text(text: str) -> str:
    """Whatever follows a name that looks like a secret's goes, and so does what may be encoded."""
    text = _ENCODED.sub(lambda found: f"<{len(found[0])} characters>", text)
    text = _NAMED.sub(lambda found: found[1] + MASK, text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
