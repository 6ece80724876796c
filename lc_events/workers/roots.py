"""URLs as resources write them, and the real paths that a program on this node opens."""

from __future__ import annotations

from pathlib import Path

from lc_events.storage import LocalStorage

__all__ = ["URL_SEPARATOR", "URL_VARIABLES", "real_paths", "without_root"]

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


def real_paths(urls: str, local: LocalStorage) -> str:
    """The URLs of a variable as real paths of `local`; others, such as s3://, stay as they are.

    Raises StorageError `outside` for a URL that would leave the root.
    """
    return URL_SEPARATOR.join(str(local.path(url)) if url.startswith("/") else url for url in urls.split(URL_SEPARATOR))


def without_root(path: str, root: Path) -> str:
    """The URL of a real path, as the global manager knows it; what does not lie below the root stays as it is."""
    if root == Path("/"):
        return path
    for prefix in (root, root.resolve()):  # a program may have followed a link in the root
        if Path(path).is_relative_to(prefix):
            return "/" + str(Path(path).relative_to(prefix))
    return path
