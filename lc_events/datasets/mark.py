"""How far a file has been counted, and what a look can find."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Batch", "Grew", "Look", "Mark", "Reset", "Unchanged", "Unreadable"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where a file has been counted, and what the counted part looked like; `Mark()` is the start of any file.

    `rows` records end at byte `offset`. `after_partial`: the last of them had no line end yet. `splits`: offsets where
    a record ended within a line that later went on. `size`, `identity`, `stamp`: the file's state then, `stamp` empty
    if it was still changing. `head`, `tail`: digests of the first and last 4 KiB before `offset`; `chain`, `rest`: of
    all whole blocks before it and of the bytes after them.
    """

    rows: int = 0
    offset: int = 0
    header: str | None = None
    after_partial: bool = False
    splits: tuple[int, ...] = ()
    size: int = 0
    identity: str = ""
    stamp: str = ""
    head: str = ""
    tail: str = ""
    chain: str = ""
    rest: str = ""

    def to_json(self) -> dict[str, object]:
        """Fields that differ from those of `Mark()`, as JSON knows them."""
        found = {field.name: getattr(self, field.name) for field in fields(self)} | {"splits": list(self.splits)}
        return {name: value for name, value in found.items() if value or (name == "header" and value is not None)}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Mark:
        """Inverse of `to_json`; fields of later versions are ignored, `ValueError` for those of a wrong type."""
        known = {name: data[name] for name in _TYPES if name in data}
        for name, value in known.items():
            if not isinstance(value, _TYPES[name]):
                raise ValueError(f"a mark's {name} cannot be {value!r}")  # noqa: TRY004 - wrong data, not a wrong call
        return cls(**cast("dict[str, Any]", known | {"splits": tuple(cast("list[int]", known.get("splits", [])))}))


_TYPES: dict[str, type] = {
    "rows": int,
    "offset": int,
    "header": str,
    "after_partial": bool,
    "splits": list,
    "size": int,
    "identity": str,
    "stamp": str,
    "head": str,
    "tail": str,
    "chain": str,
    "rest": str,
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that came together, as half-open ranges: `rows` in the file, `bytes` of the file, `spooled` in the spool.

    `spooled` is None where the records were only counted. `header` is the csv header, see `header_bytes`.
    """

    rows: tuple[int, int]
    bytes: tuple[int, int]
    spooled: tuple[int, int] | None
    header: str | None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """No new record. `again_in` seconds another look is due without any notice; None: only when something changes."""

    again_in: float | None = None


@dataclass(frozen=True, slots=True)
class Grew:
    """New records; they count once `Follower.committed(mark)` was called. `again_in` as in `Unchanged`."""

    batch: Batch
    mark: Mark
    again_in: float | None = None

    @property
    def more(self) -> bool:
        """Whether the file holds more already, or has not stood still yet: look again at once."""
        return self.again_in == 0


@dataclass(frozen=True, slots=True)
class Reset:
    """What was counted is no longer in the file; after `Follower.committed(mark)` what it holds is counted anew."""

    reason: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The dataset cannot be read now; nothing counted is lost, and the next look tries again.

    Codes: `missing`, `denied`, `not_a_file`, `csv_quote`, `csv_header`, `unsupported`, `io`; of objects those of
    `Storage` too.
    """

    code: str
    error: str


Look: TypeAlias = Unchanged | Grew | Reset | Unreadable
