"""Why a broker cannot be reached or says no, in words that tell what to do."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paho.mqtt.reasoncodes import ReasonCode

__all__ = ["Failure", "connect_refused", "connection_failed", "disconnected_by_broker", "refused"]

_NOT_AUTHORIZED = 0x87

_HINTS = {
    0x85: "the broker does not accept this client id",
    0x86: "user name or password is wrong",
    _NOT_AUTHORIZED: "the broker's ACL forbids it",
    0x8A: "the broker has banned this client",
    0x8E: "another client has connected with the same client id",
    0x90: "the broker does not accept this topic",
    0x93: "too many messages in flight for the broker",
    0x95: "the message is larger than the broker takes",
    0x97: "the broker's quota is used up",
    0x9A: "the broker keeps no retained messages",
    0x9B: "the broker does not take this QoS",
}
_PERMANENT = {0x85, 0x86, _NOT_AUTHORIZED, 0x8A, 0x8C}

_CERTIFICATE = {
    9: "the broker's certificate is not valid yet (is this machine's clock right?)",
    10: "the broker's certificate has expired",
    18: "the broker's certificate is self-signed and not trusted: give its CA as the CA file",
    19: "the broker's certificate chain ends in a CA that is not trusted: wrong or missing CA file",
    20: "the broker's certificate is signed by a CA that is not trusted: wrong or missing CA file",
    23: "the broker's certificate has been revoked",
    62: "the broker's certificate does not name the host that we connect to",
    64: "the broker's certificate does not name the address that we connect to",
}
_ALERTS = {
    "UNKNOWN_CA": "the broker does not trust the CA of our certificate",
    "CERTIFICATE_EXPIRED": "the broker says that our certificate has expired",
    "CERTIFICATE_REVOKED": "the broker says that our certificate has been revoked",
    "CERTIFICATE_REQUIRED": "the broker wants a client certificate and we have none: set certificate and key file",
    "BAD_CERTIFICATE": "the broker does not accept our certificate",
    "CERTIFICATE_UNKNOWN": "the broker does not accept our certificate",
    "HANDSHAKE_FAILURE": "no common TLS settings with the broker, or it wants a client certificate",
    "PROTOCOL_VERSION": "no common TLS version with the broker",
    "WRONG_VERSION_NUMBER": "the broker does not speak TLS on this port: mqtt:// instead of mqtts://, or another port",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a connection did not come about or ended; `permanent` if trying again cannot help."""

    words: str
    permanent: bool = False


def refused(reason: ReasonCode) -> str:
    """Words for a PUBACK's or SUBACK's reason code."""
    name = reason.getName().lower()
    hint = _HINTS.get(reason.value)
    return f"{name} (0x{reason.value:02X})" + (f": {hint}" if hint else "")


def connect_refused(reason: ReasonCode) -> Failure:
    """Words for a CONNACK's reason code; Mosquitto answers 0x87 to a wrong password."""
    if reason.value == _NOT_AUTHORIZED:
        words = "not authorized (0x87): the broker does not accept this user, password or client id"
    else:
        words = refused(reason)
    return Failure(f"the broker refuses us: {words}", permanent=reason.value in _PERMANENT)


def disconnected_by_broker(reason: ReasonCode) -> Failure:
    """Words for a DISCONNECT that the broker sent (MQTT 5)."""
    return Failure(f"the broker disconnected us: {refused(reason)}")


def connection_failed(error: BaseException, *, handshake: bool = False) -> Failure:
    """Words for what the network or TLS says; `handshake` if it said so before TLS was there."""
    if handshake and isinstance(error, ConnectionResetError | ConnectionAbortedError | ssl.SSLEOFError):
        return Failure(
            "the connection was closed instead of a TLS handshake: mqtt:// instead of mqtts://, another port?"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure(_CERTIFICATE.get(error.verify_code, f"the broker's certificate: {error.verify_message}"), True)
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        for name, words in _ALERTS.items():
            if reason.endswith(name):
                return Failure(words, permanent=True)
        return Failure(f"TLS failed: {reason.replace('_', ' ').lower() or error}")
    if isinstance(error, socket.gaierror):
        return Failure("the host's name cannot be resolved")
    if isinstance(error, TimeoutError):
        return Failure("no answer in time: is it the right host and port, is a firewall between?")
    if isinstance(error, ConnectionRefusedError):
        return Failure("connection refused: is the broker running?")
    if isinstance(error, OSError):
        return Failure(f"{error.strerror or error}".lower())
    return Failure(str(error) or type(error).__name__)
