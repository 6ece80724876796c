"""URLs as resources write them, and the real paths that a program on this node opens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lc_events.messages.resources import is_s3
from lc_events.storage import LocalStorage

__all__ = ["INDEX_NAME", "URL_SEPARATOR", "URL_VARIABLES", "is_brought_in", "real_paths", "without_root"]

URL_VARIABLES = (
    "TRAIN_DATASET_URL",
    "TEST_DATASET_URL",
    "ORIGINAL_DATASET_URL",
    "MODEL_URLS",
    "OUTPUT_URL",
    "CLOUD_KB_INDEX",
)
"""Sedna's variables that hold URLs; Sedna's own GM puts the mount point before them."""

URL_SEPARATOR = ";"
"""Between the URLs of MODEL_URLS (Sedna, pkg/globalmanager/runtime/worker.go)."""


INDEX_NAME = "dataIndex.txt"
"""The file in which an LC lists the objects that samples name; workers get it for a dataset (Sedna)."""


def is_brought_in(name: str, url: str) -> bool:
    """Whether the object that a variable names is fetched for the program; a whole dataset it must fetch itself."""
    return is_s3(url) and (name != "ORIGINAL_DATASET_URL" or url.endswith(f"/{INDEX_NAME}"))


def real_paths(name: str, urls: str, local: LocalStorage, object_path: Callable[[str], Path]) -> str:
    """The URLs of a variable as real paths of `local`, objects as the files that are brought in; others stay.

    Raises StorageError `outside` for a URL that would leave the root.
    """
    return URL_SEPARATOR.join(_real_path(name, url, local, object_path) for url in urls.split(URL_SEPARATOR))


def _real_path(name: str, url: str, local: LocalStorage, object_path: Callable[[str], Path]) -> str:
    if is_brought_in(name, url):
        return str(object_path(url))
    return str(local.path(url)) if url.startswith("/") else url


def without_root(path: str, root: Path) -> str:
    """The URL of a real path, as the global manager knows it; what does not lie below the root stays as it is."""
    if root == Path("/"):
        return path
    for prefix in (root, root.resolve()):  # a program may have followed a link in the root
        if Path(path).is_relative_to(prefix):
            return "/" + str(Path(path).relative_to(prefix))
    return path
