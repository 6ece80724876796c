"""Objects as tests look at them, and storage behind any endpoint."""

from __future__ import annotations

from lc_events.storage import Credential, S3Clients
from lc_events.storage.s3 import S3Storage

_clients: dict[float, S3Clients] = {}


def storage_at(endpoint: str, *, timeout: float = 20.0, **keys: str) -> S3Storage:
    """Storage behind an endpoint HOST:PORT that checks no keys, or of these keys."""
    given = {"access_key": "any", "secret_key": "any-secret", **keys}
    clients = _clients.setdefault(timeout, S3Clients(timeout=timeout))
    return clients.storage(Credential(f"http://{endpoint}", **given))


def objects(storage: S3Storage, url: str) -> dict[str, str]:
    """All objects below a URL with their text, as the recordings list them."""
    return {found: b"".join(storage.read(found)).decode() for found in storage.list(url)}


def open_uploads(storage: S3Storage, bucket: str) -> list[str]:
    """Keys of uploads in parts that were begun and not ended."""
    found = storage._client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return [upload["Key"] for upload in found]
