"""Objects as files of a run: `s3://bucket/key` lies at FOLDER/bucket/key, so they keep their places to each other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lc_events.storage import Credential, LocalStorage, S3Clients
from lc_events.storage.s3 import S3Storage

__all__ = ["OBJECTS_VARIABLE", "ObjectFolder"]

OBJECTS_VARIABLE = "LC_OBJECTS"
"""Tells a program, and `fetch` in it, the folder of its run's objects."""

_SCHEME = "s3://"
_FETCHED = ".fetched"


class ObjectFolder:
    """The objects of one run below `folder`. `storage` is called with the first request, not before.

    Methods raise `StorageError`, with code `outside` for a key that would leave the folder.
    """

    def __init__(self, folder: Path, storage: Callable[[], S3Storage]) -> None:
        self.folder = folder
        self._local = LocalStorage(folder)
        self._storage = storage

    @classmethod
    def of_environment(cls, folder: Path, environ: Mapping[str, str], clients: S3Clients) -> ObjectFolder:
        """Objects as seen with the credential in `environ` (Sedna's names), or else with what boto3 finds."""
        return cls(folder, lambda: clients.storage(Credential.from_environ(environ)))

    def path(self, url: str) -> Path:
        """Where an object lies, or would lie."""
        return self._local.path(f"/{url.removeprefix(_SCHEME)}")

    def url(self, path: str) -> str | None:
        """The object that a file is, or would be; None for a file elsewhere."""
        for folder in (self.folder, self.folder.resolve()):  # a program may have followed a link
            if Path(path).is_relative_to(folder) and Path(path) != folder:
                return _SCHEME + Path(path).relative_to(folder).as_posix()
        return None

    def fetch(self, url: str, path: Path | None = None) -> Path:
        """Fetch an object into a file, at its own place or at `path`; a file that is there already stays as it is."""
        target = path or self.path(url)
        if not target.is_file():
            self._local.write(f"/{target.relative_to(self.folder)}", self._storage().read(url))
            self._note(target)
        return target

    def upload(self, url: str) -> list[str]:
        """Upload all files below the place of a folder, except those that were fetched and not changed; their URLs."""
        fetched = self._noted()
        found = [path for path in _files(self.path(url)) if fetched.get(str(path)) != _state(path)]
        urls = [f"{url.rstrip('/')}/{path.relative_to(self.path(url)).as_posix()}" for path in found]
        for path, target in zip(found, urls, strict=True):
            self._storage().write(target, self._local.read(f"/{path.relative_to(self.folder)}"))
        return urls

    def _note(self, path: Path) -> None:
        """One line per file, in a single write: the program may fetch too, in its own process."""
        line = json.dumps([str(path), _state(path)]) + "\n"
        descriptor = os.open(self.folder / _FETCHED, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def _noted(self) -> dict[str, list[int]]:
        try:
            lines = (self.folder / _FETCHED).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        return dict(map(json.loads, lines))


def _files(folder: Path) -> Iterator[Path]:
    """Plain files, no links: what a link shows is not the program's."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]
