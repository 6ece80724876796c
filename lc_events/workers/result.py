"""How a program says what it made: a small JSON file. Nothing but the standard library is imported here."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["RESULT_FILE_VARIABLE", "report"]

RESULT_FILE_VARIABLE = "LC_RESULT_FILE"

Metrics = Mapping[str, Sequence[float] | float | str]
Model = str | os.PathLike[str] | Mapping[str, object]


def report(
    models: Iterable[Model] = (),
    *,
    metrics: Metrics | None = None,
    owner_info: Mapping[str, object] | None = None,
) -> None:
    """Write the result of a train, eval or inference program; the last call counts.

    `models` are paths, or Sedna's mappings `{"format", "url", "metrics", …}`; `metrics` (Sedna writes lists of numbers)
    belongs to each model that has none of its own. The file named by the environment variable LC_RESULT_FILE appears
    whole or not at all; without the variable, in a program started by hand, the result is printed.
    Raises ValueError for a NaN or an infinite number, TypeError for what JSON cannot hold.
    """
    result = {"results": [_model(model, metrics) for model in models], "ownerInfo": owner_info}
    text = json.dumps(result, allow_nan=False, default=_plain)
    target = os.environ.get(RESULT_FILE_VARIABLE)
    if target is None:
        sys.stdout.write(text + "\n")
        return
    _write(Path(target), text)


def _model(model: Model, metrics: Metrics | None) -> dict[str, object]:
    if isinstance(model, Mapping):
        named = dict(model)
    else:
        path = os.fspath(model)
        named = {"format": Path(path).suffix.removeprefix(".") or "unknown", "url": path}
    if metrics is not None:
        named.setdefault("metrics", metrics)
    return named


def _plain(value: object) -> object:
    """Numbers and arrays of numpy and its kin, without importing them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for convert in ("tolist", "item"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    raise TypeError(f"a result cannot hold a {type(value).__name__}: give numbers, text, lists or mappings")


def _write(target: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=".result-", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(target)
