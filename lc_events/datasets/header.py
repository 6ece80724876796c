"""Csv headers as text, whatever bytes they hold."""

from __future__ import annotations

__all__ = ["header_bytes", "header_text"]

_SHIFT = 0xF700


def header_text(raw: bytes) -> str:
    """Csv header as text for JSON. Bytes that are not UTF-8 become U+F780 to U+F7FF, so that none is lost."""
    text = raw.decode("utf-8", errors="surrogateescape")
    return "".join(chr(ord(char) - 0xDC00 + _SHIFT) if "\udc80" <= char <= "\udcff" else char for char in text)


def header_bytes(text: str) -> bytes:
    """Header as it stood in the file, without line end: the inverse of `header_text`."""
    shifted = (chr(ord(char) - _SHIFT + 0xDC00) if "\uf780" <= char <= "\uf7ff" else char for char in text)
    return "".join(shifted).encode("utf-8", errors="surrogateescape")
