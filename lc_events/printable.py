"""Text of others, made safe to show: names and outputs of workers reach logs, errors and tables."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Unicode categories of what is not seen itself: control, format and direction characters, line ends."""


def printable(text: str) -> str:
    """`text` on one line: what would end it, command a terminal or turn the writing direction is escaped."""
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _UNSEEN:
        return char
    code = ord(char)
    return _SHORT.get(char) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )
