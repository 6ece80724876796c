"""The TLS context of a connection, from the files that the settings name."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from lc_events.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from lc_events.mqtt.settings import MqttSettings

__all__ = ["tls_context"]


def tls_context(settings: MqttSettings) -> ssl.SSLContext:
    """Read the files anew, so that renewed certificates serve the next connection; UsageError names the wrong one.

    Without a CA file the system's CAs are trusted. Host names are always checked.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if settings.ca_file is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _readable("CA", settings.ca_file)
        try:
            context.load_verify_locations(cafile=settings.ca_file)
        except ssl.SSLError:
            raise UsageError(f"MQTT CA file {settings.ca_file}: holds no PEM certificate") from None
    if settings.cert_file is not None:
        _readable("certificate", settings.cert_file)
        if settings.key_file is not None:
            _readable("key", settings.key_file)
        try:
            # the empty password keeps OpenSSL from asking for one on the terminal
            context.load_cert_chain(settings.cert_file, settings.key_file, password="")
        except ssl.SSLError as error:
            files = " and ".join(str(each) for each in (settings.cert_file, settings.key_file) if each)
            words = "do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else _no_key_pair(error)
            raise UsageError(f"MQTT certificate and key {files}: {words}") from None
    context.sslsocket_class = _HandshakeSocket
    return context


class _HandshakeSocket(ssl.SSLSocket):
    """Closed when its handshake fails, which paho leaves to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        """Shake hands, or close."""
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


def _no_key_pair(error: ssl.SSLError) -> str:
    reason = (error.reason or "unknown reason").replace("_", " ").lower()
    return f"cannot be read as PEM without a pass phrase ({reason})"


def _readable(what: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise UsageError(f"MQTT {what} file {path}: {error.strerror}") from None
