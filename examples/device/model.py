"""Announced models: read from a shared file system or from S3, and used only if the copy has the announced hash."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

CHUNK = 1 << 20


class NotReadableError(Exception):
    """The file cannot be read now; it may be later."""


class OtherFileError(Exception):
    """The file is not the announced one; when a newer model replaced it, that is announced next."""


@dataclass(frozen=True)
class Announcement:
    """The payload of `sedna/state/NODE/models/NAMESPACE/NAME`, as far as a device needs it."""

    round: int
    url: str
    sha256: str
    size: int

    @classmethod
    def read(cls, payload: bytes) -> Announcement:
        """ValueError, KeyError or TypeError if it is none."""
        fields: dict[str, Any] = json.loads(payload)
        return cls(int(fields["round"]), str(fields["url"]), str(fields["sha256"]), int(fields["size"]))


class KeptModel:
    """The device's own copy: it works with it when broker, network and disk of the node are away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._note = path.with_name(path.name + ".json")
        self.announcement = self._read_note()
        """What the copy was announced as; None if there is none yet, or it is damaged."""

    def replace(self, announcement: Announcement, files: Path) -> None:
        """Copy the announced model and put it in place at once; NotReadableError or OtherFileError if not."""
        new = self.path.with_name(self.path.name + ".new")
        try:
            with opened(announcement.url, files) as source:
                copied = _copy(source, new, announcement.size)
            if copied != (announcement.size, announcement.sha256):
                raise OtherFileError(f"{announcement.url} has {copied[0]} bytes and SHA-256 {copied[1][:12]}")
            new.replace(self.path)
        finally:
            new.unlink(missing_ok=True)
        self._note.write_text(json.dumps(asdict(announcement)))
        self.announcement = announcement

    def _read_note(self) -> Announcement | None:
        try:
            announcement = Announcement.read(self._note.read_bytes())
            with self.path.open("rb") as kept:
                sha256 = hashlib.file_digest(kept, "sha256").hexdigest()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return announcement if sha256 == announcement.sha256 else None


@contextmanager
def opened(url: str, files: Path) -> Iterator[IO[bytes]]:
    """The announced file: an object, or a path below `files`, where the node's folders are mounted here."""
    try:
        if url.startswith("s3://"):
            with _s3_object(url) as body:
                yield body
            return
        path = (files / url.lstrip("/")).resolve()
        if not path.is_relative_to(files.resolve()):
            raise NotReadableError(f"{url} leads out of {files}")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise NotReadableError(str(error)) from error


@contextmanager
def _s3_object(url: str) -> Iterator[IO[bytes]]:
    """Server and keys as Sedna names them, `S3_ENDPOINT_URL` and `ACCESS_KEY_ID`, else as boto3 finds them itself."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise NotReadableError(f"{url}: needs boto3: pip install boto3") from None
    place = urlsplit(url)
    try:
        client = boto3.client(
            "s3",
            endpoint_url=os.environ.get("S3_ENDPOINT_URL"),
            aws_access_key_id=os.environ.get("ACCESS_KEY_ID"),
            aws_secret_access_key=os.environ.get("SECRET_ACCESS_KEY"),
        )
        with client.get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))["Body"] as body:
            yield body
    except (BotoCoreError, ClientError, ValueError) as error:
        raise NotReadableError(f"{url}: {error}") from error


def _copy(source: IO[bytes], target: Path, size: int) -> tuple[int, str]:
    """Bytes and hash of what was copied; not much more than `size` of it, however long the source is."""
    digest, copied = hashlib.sha256(), 0
    with target.open("wb") as file:
        while copied <= size and (chunk := source.read(CHUNK)):
            file.write(chunk)
            digest.update(chunk)
            copied += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return copied, digest.hexdigest()
