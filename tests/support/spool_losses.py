"""What somebody may do to the files of a spool."""

from __future__ import annotations

import os
from pathlib import Path


def delete_files(spool: Path) -> None:
    for path in spool.iterdir():
        path.unlink()


def cut_data(spool: Path) -> None:
    for path in spool.glob("*.data"):
        os.truncate(path, 10)
