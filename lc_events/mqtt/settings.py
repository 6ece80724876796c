"""Where the broker is and who we are to it; a password goes in and is never shown again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lc_events.errors import UsageError
from lc_events.messages.names import is_word

__all__ = ["MqttSettings"]

_DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
_CLIENT_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """One broker and one identity; `client_id` None is a throw-away client, which has no persistent session."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    client_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that have been security holes in brokers, and what would silently go unencrypted."""
        if self.username is not None and not is_word(self.username):
            raise UsageError("MQTT user name: 1 to 64 of A-Z a-z 0-9 _ . - only")
        if self.client_id is not None and _CLIENT_ID.fullmatch(self.client_id) is None:
            raise UsageError(f"MQTT client id {self.client_id!a}: 1 to 128 of A-Z a-z 0-9 _ . - only")
        if self.password is not None and self.username is None:
            raise UsageError("MQTT password without a user: put the user into the URL, mqtt://USER@HOST")
        if not self.tls and (self.ca_file or self.cert_file or self.key_file):
            raise UsageError("MQTT CA, certificate and key files are for TLS: write mqtts:// instead of mqtt://")
        if self.key_file and not self.cert_file:
            raise UsageError("MQTT key file without a certificate file")

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        password_file: str | Path | None = None,
        ca_file: str | Path | None = None,
        cert_file: str | Path | None = None,
        key_file: str | Path | None = None,
        client_id: str | None = None,
    ) -> Self:
        """Read `mqtt://[USER[:PASSWORD]@]HOST[:PORT]`, or `mqtts://`; user and password percent-encoded, IPv6 in [].

        The ports are 1883 and 8883 if none is given. A password file is read once, without its last line end.
        UsageError says what is wrong, without the password.
        """
        parts, port = _split(url)
        username = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password is not None else None
        if password_file is not None:
            if password is not None:
                raise UsageError("MQTT password both in the URL and in a password file: keep one, best the file")
            password = _read_password(Path(password_file))
        return cls(
            host=parts.hostname or "",
            port=port,
            tls=parts.scheme == "mqtts",
            username=username,
            password=password,
            ca_file=_path(ca_file),
            cert_file=_path(cert_file),
            key_file=_path(key_file),
            client_id=client_id,
        )

    @property
    def display_url(self) -> str:
        """The URL without the password, for logs and errors."""
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{user}{host}:{self.port}"


def _split(url: str) -> tuple[SplitResult, int]:
    shown = _without_password(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text may quote the password
        raise UsageError(f"MQTT URL {shown}: port or host cannot be read, want mqtt://HOST:PORT") from None
    if parts.scheme not in _DEFAULT_PORTS or not url[len(parts.scheme) :].startswith("://"):
        raise UsageError(f"MQTT URL {shown}: must begin with mqtt:// or mqtts://")
    if not parts.hostname or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise UsageError(f"MQTT URL {shown}: names no host")
    if port == 0:
        raise UsageError(f"MQTT URL {shown}: port 0 cannot be connected to")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"MQTT URL {shown}: nothing may follow host and port (in a password write # as %23, / as %2F)")
    return parts, port or _DEFAULT_PORTS[parts.scheme]


def _without_password(url: str) -> str:
    """`url` with all before its last @ cut out, for in a URL that cannot be parsed anything may be the password."""
    before, at, after = url.rpartition("@")
    if not at:
        return ascii(url[:200])
    scheme, separator, _ = before.partition("://")
    return ascii(f"{scheme if separator else ''}{separator}…@{after}"[:200])


def _read_password(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"MQTT password file {path}: {reason}", code="password_file") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password:
        raise UsageError(f"MQTT password file {path}: is empty", code="password_file")
    return password


def _path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)
