"""JSON for people: one field on each line, nested fields below their name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lc_events.printable import printable

__all__ = ["described"]


def described(value: object, indent: str = "") -> Iterator[str]:
    """The lines of a value; every text in them is made safe to show."""
    pairs = [(printable(str(name)), part) for name, part in _fields(value)]
    width = max((len(name) for name, part in pairs if not _is_nested(part)), default=0)
    for name, part in pairs:
        if _is_nested(part):
            yield f"{indent}{name}"
            yield from described(part, f"{indent}  ")
        else:
            yield f"{indent}{name.ljust(width)}  {_value(part)}".rstrip()


def _fields(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    return ((f"{number}.", part) for number, part in enumerate(value if isinstance(value, list) else (), start=1))


def _is_nested(value: object) -> bool:
    return isinstance(value, (Mapping, list)) and bool(value)


def _value(value: object) -> str:
    match value:
        case None | {} | []:
            return "-"
        case bool():
            return "yes" if value else "no"
    return printable(str(value))
