"""Which executables an order may start: the node's owner lists them, nobody else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lc_events.errors import RefusedError

__all__ = ["resolve_executable"]

_PYTHON = ("python", "python3")


def resolve_executable(
    name: str, allow: Sequence[str], environ: Mapping[str, str], *, written: str | None = None
) -> str:
    """The absolute path behind the first word of a command.

    A word counts only if it is listed exactly: a bare name is looked up on the agent's own PATH, never the order's, and
    a path must be listed as that absolute path. `python` and `python3` are the interpreter that runs the agent, so that
    programs find the packages of its virtual environment. Raises RefusedError `not_allowed`, or `malformed` if what is
    listed does not exist; they name the word as it is `written`, for what it expands to may be a secret.
    """
    written = name if written is None else written
    if name not in allow:
        raise RefusedError(f"{written[:100]!r} is not in WORKER_ALLOW ({', '.join(allow)})", code="not_allowed")
    if name in _PYTHON:
        return sys.executable
    if os.sep in name and not Path(name).is_absolute():
        raise RefusedError(f"{written[:100]!r} is neither a bare name nor an absolute path", code="not_allowed")
    found = shutil.which(name, path=environ.get("PATH", os.defpath))
    if found is None:
        raise RefusedError(f"{written[:100]!r} is in WORKER_ALLOW, but this node has no such executable")
    return str(Path(found).absolute())
