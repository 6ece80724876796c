from __future__ import annotations

from typing import TYPE_CHECKING

from lc_events.errors import StorageError

if TYPE_CHECKING:
    from lc_events.storage.local import LocalStorage
    from lc_events.storage.port import Storage

__all__ = ["storage_for"]


def storage_for(url: str, *, local: LocalStorage) -> Storage:
    """Storage of a URL: a path, with or without a leading `/`, is local.

    Raises `StorageError` with code `unsupported` for every URL with a scheme, `s3://` included.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or "/" in scheme:
        return local
    if scheme == "s3":
        raise StorageError(f"{url}: object storage is not supported yet, use a local path", code="unsupported")
    raise StorageError(f"{url}: URLs of this kind are not supported, use a local path", code="unsupported")
