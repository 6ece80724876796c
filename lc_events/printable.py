"""Text of others, made safe to show: names and outputs of workers reach logs, errors and tables."""

from __future__ import annotations

__all__ = ["printable"]

_SHORT = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_CONTROL = [*range(0x20), *range(0x7F, 0xA0)]
_LINE_ENDS_AND_DIRECTIONS = [*range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = (
    {code: f"\\x{code:02x}" for code in _CONTROL}
    | {code: f"\\u{code:04x}" for code in _LINE_ENDS_AND_DIRECTIONS}
    | _SHORT
)


def printable(text: str) -> str:
    """`text` on one line: what would end it, command a terminal or turn the writing direction is escaped."""
    return text.translate(_ESCAPES)
