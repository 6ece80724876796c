"""HTML and SVG by small functions; every text goes through `text`, for workers' words are hostile."""

from __future__ import annotations

from html import escape

from lc_events.printable import printable

__all__ = ["Attribute", "element", "text"]

Attribute = str | int | float | None


def text(value: object) -> str:
    """Text that is safe in an element or an attribute; control and direction characters are shown, not obeyed."""
    return escape(printable(str(value)), quote=True)


def element(tag: str, *children: str, **attributes: Attribute) -> str:
    """`<tag attributes>children</tag>`; children are markup already. `class_` is class, `_` in a name is `-`."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>"


def _value(value: str | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else text(value)
