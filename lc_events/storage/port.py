"""What storage of files and objects can do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FileStat", "Storage", "WrittenFile"]


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file as it was written: `url` as the resource names it, `size` in bytes, `sha256` in lower-case hex."""

    url: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileStat:
    """What is known of a file without reading it; `size` in bytes."""

    size: int


class Storage(Protocol):
    """Files by URL. Every method raises `StorageError`; its message says what failed, where, and the system's reason.

    Codes: `missing` (with `missing=True`), `outside`, `denied`, `no_space`, `not_a_file`, `unsupported`,
    and `storage` for the rest. Of S3 also: `no_bucket`, `credential` (none, or unusable), `expired`, `clock`, `slow`,
    `unreachable`, `broken_off` (half an answer), `server` (its own trouble), `changed` (replaced while it was read).
    """

    def write(self, url: str, chunks: Iterable[bytes], *, within: str | None = None) -> WrittenFile:
        """Write a file; a reader sees the old one or the whole new one, and after the return it survives a power cut.

        Folders that are missing are made. When `chunks` raises, nothing is changed and the error passes through. With
        `within`, a folder that (after symlinks) does not lie below that URL is refused with code `outside`.
        """
        ...

    def copy(
        self, source_url: str, target_url: str, *, below: tuple[str, ...], within: str | None = None
    ) -> WrittenFile:
        """Copy a file as `write` writes one, if the source really (after symlinks) lies below one of the URLs `below`.

        A source elsewhere is refused with code `outside`: a worker must not make us publish `/etc/shadow`.
        """
        ...

    def make_folder(self, url: str, *, within: str | None = None) -> None:
        """Make a folder and those above it; one that exists is left as it is. `within` as of `write`."""
        ...

    def stat(self, url: str) -> FileStat:
        """Size of a file; a folder is no file."""
        ...

    def exists(self, url: str) -> bool:
        """Whether the URL is a file that can be looked at; trouble other than a missing file is raised."""
        try:
            self.stat(url)
        except StorageError as error:
            if error.missing or error.code == "not_a_file":
                return False
            raise
        return True

    def sha256(self, url: str) -> str:
        """SHA-256 of the whole file, in lower-case hex."""
        digest = hashlib.sha256()
        for chunk in self.read(url):
            digest.update(chunk)
        return digest.hexdigest()

    def read(
        self, url: str, *, offset: int = 0, length: int | None = None, below: tuple[str, ...] | None = None
    ) -> Iterator[bytes]:
        """Bytes of a file from `offset` on, `length` of them or all, in chunks; ends early where the file ends.

        With `below` it is refused as `copy` refuses a source.
        """
        ...
