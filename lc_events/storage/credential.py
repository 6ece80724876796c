"""Who we are at an S3 server, from Sedna's credential annotation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lc_events.errors import RefusedError, StorageError
from lc_events.messages.json import loads_object

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Credential"]

_ANNOTATION = "the annotation sedna.io/credential"
_OFF = ("0", "false", "no")


@dataclass(frozen=True, slots=True)
class Credential:
    """Where an S3 server is and who we are there; all None: whatever boto3 finds for itself.

    `endpoint` is a URL. Keys never show in `repr`, and errors made of a credential name fields, not values.
    """

    endpoint: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None

    @classmethod
    def from_annotation(cls, text: str) -> Credential:
        """What Sedna's GM puts into the annotation `sedna.io/credential`, a JSON object.

        It has `s3-endpoint`, `s3-usehttps` ("0" or "1"), `ACCESS_KEY_ID`, `SECRET_ACCESS_KEY`; `SESSION_TOKEN` and
        `s3-region` are read too. Raises `StorageError` with code `credential`.
        """
        try:
            found = loads_object(text.encode())
        except (RefusedError, UnicodeEncodeError):
            raise _bad(f"{_ANNOTATION} is not a JSON object") from None
        values = {name: "" if value is None else str(value) for name, value in found.items()}
        return cls._made(
            _ANNOTATION,
            endpoint=values.get("s3-endpoint", ""),
            use_https=values.get("s3-usehttps", ""),
            access_key=values.get("ACCESS_KEY_ID", ""),
            secret_key=values.get("SECRET_ACCESS_KEY", ""),
            session_token=values.get("SESSION_TOKEN", ""),
            region=values.get("s3-region", ""),
        )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Credential:
        """Sedna's names for workers: `S3_ENDPOINT_URL`, `S3_USE_HTTPS`, `ACCESS_KEY_ID`, `SECRET_ACCESS_KEY`.

        Those of boto3 are boto3's to read. Raises `StorageError` with code `credential`.
        """
        return cls._made(
            "the environment",
            endpoint=environ.get("S3_ENDPOINT_URL", ""),
            use_https=environ.get("S3_USE_HTTPS", ""),
            access_key=environ.get("ACCESS_KEY_ID", ""),
            secret_key=environ.get("SECRET_ACCESS_KEY", ""),
            session_token=environ.get("SESSION_TOKEN", ""),
            region="",
        )

    @classmethod
    def _made(
        cls,
        where: str,
        *,
        endpoint: str,
        use_https: str,
        access_key: str,
        secret_key: str,
        session_token: str,
        region: str,
    ) -> Credential:
        if bool(access_key) != bool(secret_key):
            raise _bad(f"{where} names only one of ACCESS_KEY_ID and SECRET_ACCESS_KEY")
        url = _endpoint_url(endpoint.strip(), use_https=use_https.strip().lower() not in _OFF)
        return cls(url, access_key or None, secret_key or None, session_token or None, region or None)


def _endpoint_url(endpoint: str, *, use_https: bool) -> str | None:
    """An endpoint as a URL; without a scheme `s3-usehttps` says which, https when it says nothing (as Sedna)."""
    if not endpoint:
        return None
    scheme, separator, rest = endpoint.partition("://")
    if not separator:
        scheme, rest = ("https" if use_https else "http"), endpoint
    if rest.count(":") > 1 and "[" not in rest:
        rest = f"[{rest}]"  # an IPv6 address alone: with a port it would have brackets
    try:
        parts = urlsplit(f"{scheme.lower()}://{rest}")
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or "@" in rest or "?" in rest or "#" in rest:
        raise _bad("s3-endpoint is not HOST[:PORT] or http(s)://HOST[:PORT]; an IPv6 address stands in [ ]")
    return f"{scheme.lower()}://{rest.rstrip('/')}"


def _bad(message: str) -> StorageError:
    return StorageError(message, code="credential")
