"""What came of a run, and the result file that a program writes."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lc_events.errors import RefusedError
from lc_events.messages.json import UINT64_MAX, Json, JsonObject, loads
from lc_events.workers.roots import without_root

__all__ = ["Outcome", "Result", "describe_exit", "read_result"]

_MAX_RESULT_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; `ran` if its program was started at all. A run `replaced` by a newer one is not reported."""

    status: Literal["completed", "failed", "replaced"]
    ran: bool
    results: Sequence[JsonObject] = ()
    owner_info: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a program wrote: its models, and Sedna's free `ownerInfo`."""

    models: Sequence[JsonObject]
    owner_info: JsonObject | None


def read_result(path: Path, root: Path, object_url: Callable[[str], str | None] = lambda _: None) -> Result | None:
    """Read a result file, None if there is none: `{"results": [MODEL…], "ownerInfo": {…}}`, or the list alone.

    A model is an object with a `url`; real paths below `root` become URLs again, as do those for which `object_url`
    knows an object; everything else is kept verbatim. Raises RefusedError for what could not be sent on.
    """
    raw = _read_bounded(path)
    if raw is None:
        return None
    value = loads(raw, max_integer=UINT64_MAX)
    if isinstance(value, Mapping):
        models, owner_info = value.get("results"), value.get("ownerInfo")
    else:
        models, owner_info = value, None
    if owner_info is not None and not isinstance(owner_info, Mapping):
        raise RefusedError("ownerInfo must be an object or null")
    return Result([_model(model, root, object_url) for model in _sequence(models)], owner_info)


def _read_bounded(path: Path) -> bytes | None:
    """The bytes of a plain file: a pipe would be waited for, a link could show us another file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedError(f"not readable: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("not a plain file")
        raw = file.read(_MAX_RESULT_BYTES + 1)
    if len(raw) > _MAX_RESULT_BYTES:
        raise RefusedError(f"larger than {_MAX_RESULT_BYTES} bytes; models belong into files of their own")
    return raw


def _sequence(models: Json) -> Sequence[Json]:
    if models is None:
        return []
    if isinstance(models, str) or not isinstance(models, Sequence):
        raise RefusedError("results must be a list of models")
    return models


def _model(model: Json, root: Path, object_url: Callable[[str], str | None]) -> JsonObject:
    if not isinstance(model, Mapping):
        raise RefusedError("a model must be an object with format, url and metrics")
    url = model.get("url")
    if not isinstance(url, str) or not url:
        raise RefusedError("a model has no url")
    return {**model, "url": object_url(url) or without_root(url, root)}


def describe_exit(returncode: int) -> str:
    """A failed program's end in words; a negative code is a signal, as subprocess writes it."""
    if returncode >= 0:
        return f"the program exited with {returncode}"
    try:
        return f"the program was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"the program was ended by signal {-returncode}"
