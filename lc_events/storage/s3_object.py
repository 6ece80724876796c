"""One version of an object, read in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from lc_events.errors import StorageError
from lc_events.storage.s3_errors import explained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

__all__ = ["S3Object"]

CHUNK_BYTES = 1 << 20
_FRUITLESS = 3


class _Version(TypedDict, total=False):
    IfMatch: str
    VersionId: str


@dataclass(frozen=True, slots=True)
class S3Object:
    """One object as it was when it was looked at: each request says so, and none is answered with another one's bytes.

    Methods raise `StorageError`, with code `changed` once the name leads to another object.
    """

    client: S3Client = field(repr=False)
    server: str
    url: str
    bucket: str
    key: str
    size: int
    etag: str
    version: str | None

    @property
    def stamp(self) -> str:
        """What is another one for each object that is put under the name."""
        return f"{self.etag} {self.version}" if self.version else self.etag

    def read(self, offset: int, length: int) -> bytes:
        """Exactly the bytes of a range; fewer only where the object ends."""
        return b"".join(self.chunks(offset, length))

    def chunks(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The same piece by piece, in one request; where an answer broke off, another one goes on from there."""
        end = self.size if length is None else min(offset + length, self.size)
        fruitless = 0
        while offset < end:
            before = offset
            try:
                for chunk in self._request(offset, end):
                    offset += len(chunk)
                    yield chunk
            except StorageError as error:
                fruitless = 0 if offset > before else fruitless + 1
                if error.code != "broken_off" or fruitless >= _FRUITLESS:
                    raise

    def pinned(self) -> _Version:
        """What a request must say to be about this very object."""
        return {"IfMatch": self.etag, "VersionId": self.version} if self.version else {"IfMatch": self.etag}

    def _request(self, offset: int, end: int) -> Iterator[bytes]:
        with explained(f"read {self.url}", self.server):
            answer = self.client.get_object(
                Bucket=self.bucket, Key=self.key, Range=f"bytes={offset}-{end - 1}", **self.pinned()
            )
        body = answer["Body"]
        try:
            self._check(answer, offset)
            left = end - offset
            while left:
                with explained(f"read {self.url}", self.server):
                    chunk = body.read(min(CHUNK_BYTES, left))
                if not chunk:
                    raise StorageError(f"cannot read {self.url}: the answer ends too early", code="broken_off")
                left -= len(chunk)
                yield chunk
        finally:
            body.close()

    def _check(self, answer: GetObjectOutputTypeDef, offset: int) -> None:
        """Some servers answer without regard to `If-Match` or `Range`."""
        if answer.get("ETag", self.etag) != self.etag:
            raise StorageError(f"cannot read {self.url}: the object was replaced meanwhile", code="changed")
        if offset and not answer.get("ContentRange", "").startswith(f"bytes {offset}-"):
            raise StorageError(
                f"cannot read {self.url} at {self.server}: the server cannot send a part of an object",
                code="unsupported",
            )
