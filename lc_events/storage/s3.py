"""Objects on S3 servers."""

from __future__ import annotations

import hashlib
import io
from typing import IO, TYPE_CHECKING, cast

from lc_events.errors import StorageError
from lc_events.messages.model_places import lies_in
from lc_events.storage.port import FileStat, Storage, WrittenFile
from lc_events.storage.s3_errors import explained
from lc_events.storage.s3_object import S3Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mypy_boto3_s3 import S3Client

__all__ = ["S3Storage", "bucket_and_key"]

PART_BYTES = 8 << 20
COPY_PART_BYTES = 64 << 20
"""A server copies a part of this size well within the time in which it must answer."""


class S3Storage(Storage):
    """Objects `s3://bucket/key` as one client sees them; any thread may call.

    An object appears whole under its key or not at all: S3 itself sees to that. Parts of an upload that was broken off
    by a kill go away with the next upload to that key.
    """

    def __init__(self, client: S3Client, *, server: str) -> None:
        self._client = client
        self._server = server

    def write(self, url: str, chunks: Iterable[bytes], *, within: str | None = None) -> WrittenFile:  # noqa: ARG002 - S3 has no links
        """See `Storage.write`; above 8 MiB in parts, of which one at a time is in memory."""
        bucket, key = bucket_and_key(url)
        stream = _HashedStream(chunks)
        start = stream.read(PART_BYTES + 1)
        if len(start) <= PART_BYTES:
            with explained(f"write {url}", self._server):
                self._client.put_object(Bucket=bucket, Key=key, Body=start)
        else:
            self._clear_parts(url, bucket, key)
            stream.push_back(start)
            del start
            self._upload(url, bucket, key, stream)
        return WrittenFile(url, stream.size, stream.sha256)

    def copy(
        self,
        source_url: str,
        target_url: str,
        *,
        below: tuple[str, ...],
        within: str | None = None,  # noqa: ARG002 - S3 has no links
    ) -> WrittenFile:
        """See `Storage.copy`; the server copies, from any bucket that the client may read, we read it for its hash."""
        _require_below(source_url, below)
        source = self.open_object(source_url)
        digest = hashlib.sha256()
        for chunk in source.chunks():
            digest.update(chunk)
        self._copy(source, target_url)
        if self.open_object(source_url).stamp != source.stamp:  # not every server heeds CopySourceIfMatch
            raise StorageError(f"{source_url}: was replaced while it was copied", code="changed")
        return WrittenFile(target_url, source.size, digest.hexdigest())

    def make_folder(self, url: str, *, within: str | None = None) -> None:
        """See `Storage.make_folder`; S3 has no folders, so there is nothing to do."""

    def stat(self, url: str) -> FileStat:
        """See `Storage.stat`."""
        return FileStat(self.open_object(url).size)

    def read(
        self, url: str, *, offset: int = 0, length: int | None = None, below: tuple[str, ...] | None = None
    ) -> Iterator[bytes]:
        """See `Storage.read`; all of it comes from one object, or code `changed` is raised."""
        if below is not None:
            _require_below(url, below)
        yield from self.open_object(url).chunks(offset, length)

    def open_object(self, url: str) -> S3Object:
        """Look at an object (HEAD); what is returned goes on meaning this one whatever is put in its place."""
        bucket, key = bucket_and_key(url)
        with explained(f"read {url}", self._server):
            try:
                head = self._client.head_object(Bucket=bucket, Key=key)
            except self._client.exceptions.ClientError:
                # The answer to a HEAD has no body: only a GET says which of the reasons for a 403 or 404 it is.
                self._client.get_object(Bucket=bucket, Key=key, Range="bytes=0-0")["Body"].close()
                head = self._client.head_object(Bucket=bucket, Key=key)
        version = head.get("VersionId")
        return S3Object(
            self._client,
            self._server,
            url,
            bucket,
            key,
            head["ContentLength"],
            head["ETag"],
            None if version in (None, "null") else version,
        )

    def list(self, url: str) -> Iterator[str]:
        """URLs of all objects below a folder, in the order of their keys."""
        bucket, key = bucket_and_key(url, may_be_bucket=True)
        prefix = f"{key.rstrip('/')}/" if key else ""
        pages = iter(self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix))
        while True:
            with explained(f"list {url}", self._server):
                page = next(pages, None)
            if page is None:
                return
            yield from (f"s3://{bucket}/{found['Key']}" for found in page.get("Contents", ()))

    def delete(self, url: str) -> None:
        """Delete an object; one that is not there is no error."""
        bucket, key = bucket_and_key(url)
        with explained(f"delete {url}", self._server):
            self._client.delete_object(Bucket=bucket, Key=key)

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket; one that we have already is no error."""
        with explained(f"make bucket {bucket}", self._server):
            try:
                self._client.create_bucket(Bucket=bucket)
            except (self._client.exceptions.BucketAlreadyOwnedByYou, self._client.exceptions.BucketAlreadyExists):
                self._client.head_bucket(Bucket=bucket)

    def _upload(self, url: str, bucket: str, key: str, stream: _HashedStream) -> None:
        from boto3.s3.transfer import TransferConfig

        # Without threads of its own: one part in memory, and an error of the chunks comes through as it is.
        config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, use_threads=False)
        with explained(f"write {url}", self._server):
            self._client.upload_fileobj(cast("IO[bytes]", stream), bucket, key, Config=config)

    def _copy(self, source: S3Object, target_url: str) -> None:
        from boto3.s3.transfer import TransferConfig

        bucket, key = bucket_and_key(target_url)
        if source.size > COPY_PART_BYTES:
            self._clear_parts(target_url, bucket, key)
        config = TransferConfig(
            multipart_threshold=COPY_PART_BYTES, multipart_chunksize=COPY_PART_BYTES, use_threads=False
        )
        with explained(f"copy {source.url} to {target_url}", self._server):
            named = {"Bucket": source.bucket, "Key": source.key}
            self._client.copy(
                named | ({"VersionId": source.version} if source.version else {}),  # type: ignore[arg-type]
                bucket,
                key,
                ExtraArgs={"CopySourceIfMatch": source.etag},
                Config=config,
            )

    def _clear_parts(self, url: str, bucket: str, key: str) -> None:
        """Abort uploads to a key that a kill left open: nobody else writes there."""
        with explained(f"write {url}", self._server):
            try:
                found = self._client.list_multipart_uploads(Bucket=bucket, Prefix=key).get("Uploads", ())
            except self._client.exceptions.ClientError:
                return  # some keys may write and not list; then the bucket's own rules must clean up
            for upload in found:
                if upload["Key"] == key:
                    self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload["UploadId"])


def bucket_and_key(url: str, *, may_be_bucket: bool = False) -> tuple[str, str]:
    """The parts of `s3://bucket/key`; raises `StorageError` with code `not_a_file` for what names no object."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or (not may_be_bucket and (not key or key.endswith("/"))):
        raise StorageError(f"{url}: names no object, which is s3://bucket/key", code="not_a_file")
    return bucket, key


def _require_below(url: str, folders: tuple[str, ...]) -> None:
    if not any(lies_in(url, folder) for folder in folders):
        raise StorageError(f"{url}: does not lie below {' or '.join(folders)}", code="outside")


class _HashedStream(io.RawIOBase):
    """Chunks as the file that boto3 wants; counts and hashes what it gives out, once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._ready = b""
        self._hashed = 0
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """Of all that was read."""
        return self._digest.hexdigest()

    def readable(self) -> bool:
        """It is."""
        return True

    def push_back(self, data: bytes) -> None:
        """Give `data`, which was read already, once more."""
        self._ready = data + self._ready

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        pieces, found = [self._ready], len(self._ready)
        while size < 0 or found < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._digest.update(chunk)
            self.size += len(chunk)
            pieces.append(chunk)
            found += len(chunk)
        data = b"".join(pieces)
        size = len(data) if size < 0 else size
        self._ready = data[size:]
        return data[:size]
