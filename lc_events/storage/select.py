"""Which storage a URL belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_events.errors import StorageError
from lc_events.messages.resources import is_s3
from lc_events.storage.credential import Credential

if TYPE_CHECKING:
    from lc_events.storage.local import LocalStorage
    from lc_events.storage.port import Storage, WrittenFile
    from lc_events.storage.s3 import S3Storage
    from lc_events.storage.s3_clients import S3Clients

__all__ = ["Storages"]


class Storages:
    """The storage of any URL: local files below one root, objects as a credential sees them."""

    def __init__(self, local: LocalStorage, s3: S3Clients) -> None:
        self._local = local
        self._s3 = s3

    def storage_for(self, url: str, credential: Credential | None = None) -> Storage:
        """Storage of a URL: a path, with or without a leading `/`, is local, `s3://` an object.

        Without a credential S3 is what boto3 finds for itself. Raises `StorageError` with code `unsupported` for every
        other scheme, `credential` if no client can be made.
        """
        scheme, separator, _ = url.partition("://")
        if not separator or "/" in scheme:
            return self._local
        if scheme == "s3":
            return self.s3(credential)
        raise StorageError(f"{url}: a URL is a local path or s3://bucket/key", code="unsupported")

    def s3(self, credential: Credential | None = None) -> S3Storage:
        """Storage of objects; raises `StorageError` with code `credential`."""
        return self._s3.storage(credential or Credential())

    def remember(self, folder: str) -> None:
        """As `LocalStorage.remember`; what an object's prefix means never changes."""
        if not is_s3(folder):
            self._local.remember(folder)

    def real_place(self, folder: str) -> str:
        """The local folder behind a URL as it is remembered, or an object's prefix; raises `StorageError`."""
        return folder.rstrip("/") if is_s3(folder) else str(self._local.real_place(folder))

    def copy(
        self,
        source_url: str,
        target_url: str,
        *,
        below: tuple[str, ...],
        within: str | None = None,
        credential: Credential | None = None,
    ) -> WrittenFile:
        """Copy as `Storage.copy` does, within one storage or from one to the other."""
        source = self.storage_for(source_url, credential)
        target = self.storage_for(target_url, credential)
        if source is target:
            return target.copy(source_url, target_url, below=below, within=within)
        return target.write(target_url, source.read(source_url, below=below), within=within)
