"""The boto3 clients, one for each credential."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lc_events.errors import StorageError
from lc_events.storage.s3 import S3Storage

if TYPE_CHECKING:
    from pathlib import Path

    from boto3.session import Session
    from mypy_boto3_s3 import S3Client

    from lc_events.storage.credential import Credential

__all__ = ["S3Clients"]

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
ATTEMPTS = 2
"""A caller tries again anyway, with pauses; what boto3 repeats only delays the report of a fault."""

CONNECTIONS = 32
_KEPT = 64
_AWS = (".amazonaws.com", ".amazonaws.com.cn")
_ANY_REGION = "us-east-1"


class S3Clients:
    """Makes S3 clients, one for each credential; any thread may ask. boto3 is imported with the first (40 MB, 0.3 s).

    `ca_file` takes the place of the CAs that boto3 would trust; `timeout` are seconds in which an answer must go on.
    """

    def __init__(self, *, ca_file: Path | None = None, timeout: float = READ_SECONDS) -> None:
        self._ca_file = ca_file
        self._timeout = timeout
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._storages: dict[Credential, S3Storage] = {}

    def storage(self, credential: Credential) -> S3Storage:
        """Storage as this credential sees it. Raises `StorageError` with code `credential` if none can be made."""
        with self._lock:  # https://boto3.amazonaws.com/v1/documentation/api/latest/guide/clients.html#caveats
            found = self._storages.get(credential)
            if found is None:
                client = self._client(credential)
                found = S3Storage(client, server=_server(client.meta.endpoint_url))
                self._storages[credential] = found
                if len(self._storages) > _KEPT:
                    del self._storages[next(iter(self._storages))]
            return found

    def _client(self, credential: Credential) -> S3Client:
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError

        try:
            if self._session is None:
                self._session = Session()
            client = self._made(self._session, credential, is_custom=credential.endpoint is not None)
            if credential.endpoint is None and not _is_aws(client.meta.endpoint_url):
                client = self._made(self._session, credential, is_custom=True)
        except (BotoCoreError, ValueError) as error:
            # Their texts may quote what the credential holds.
            words = (
                f"no S3 client can be made ({type(error).__name__}): check endpoint, CA file and boto3's own settings"
            )
            raise StorageError(words, code="credential") from None
        return client

    def _made(self, session: Session, credential: Credential, *, is_custom: bool) -> S3Client:
        from botocore.config import Config

        config = Config(
            connect_timeout=min(CONNECT_SECONDS, self._timeout),
            read_timeout=self._timeout,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            signature_version="s3v4",
            # Names of buckets in front of a custom host would each need a DNS record; checksums of newer SDKs are
            # refused by several servers.
            s3={"addressing_style": "path"} if is_custom else {},
            request_checksum_calculation="when_required" if is_custom else None,
            response_checksum_validation="when_required" if is_custom else None,
        )
        client: S3Client = session.client(
            "s3",
            endpoint_url=credential.endpoint,
            region_name=credential.region or session.region_name or _ANY_REGION,
            aws_access_key_id=credential.access_key,
            aws_secret_access_key=credential.secret_key,
            aws_session_token=credential.session_token,
            verify=None if self._ca_file is None else os.fspath(self._ca_file),
            config=config,
        )
        return client


def _server(endpoint: str) -> str:
    """A server as errors name it."""
    return urlsplit(endpoint).netloc.rpartition("@")[2]


def _is_aws(endpoint: str) -> bool:
    return (urlsplit(endpoint).hostname or "").endswith(_AWS)
