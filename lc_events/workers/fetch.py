"""How a program gets objects that its order does not name, such as earlier rounds' samples, without knowing of S3."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["fetch"]


def fetch(path: str | os.PathLike[str]) -> bool:
    """Fetch the object that belongs at `path`, unless the file is there already; True if the file is there then.

    In a run with objects every path below the folder LC_OBJECTS belongs to an object, so that
    `fetch(f"{OUTPUT_URL}/../../deploy/index.pkl")` finds the deployed model as with local files. For other paths, and
    in a program started by hand, nothing is fetched. Raises StorageError if the server cannot be asked.
    """
    wanted = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link out of the folder
    folder = os.environ.get("LC_OBJECTS")
    if wanted.is_file() or folder is None or not wanted.is_relative_to(folder):
        return wanted.is_file()
    from lc_events.errors import StorageError
    from lc_events.storage import S3Clients
    from lc_events.workers.objects import ObjectFolder

    objects = ObjectFolder.of_environment(Path(folder), os.environ, S3Clients())
    try:
        objects.fetch(objects.url(str(wanted)) or "")
    except StorageError as error:
        if not (error.missing or error.code == "not_a_file"):
            raise
    return wanted.is_file()
