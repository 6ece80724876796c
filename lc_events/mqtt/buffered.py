"""paho's client with less to do: what has come is read at once, what is to go is written at once, and no garbage."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Literal

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BufferedClient", "NetworkLoop"]

_READ_BYTES = 1 << 16
_HELD_BYTES = 1 << 18
_DISCONNECT = 0xE0
_PACKETS = 50
_PACKET_ID_BYTES = 2
_NO_PROPERTIES = Properties(PacketTypes.PUBACK)  # type: ignore[no-untyped-call]
_CONFIRMED = {
    b"": ReasonCode(PacketTypes.PUBACK, "Success"),
    b"\x10": ReasonCode(PacketTypes.PUBACK, "No matching subscribers"),
}
"""What a PUBACK says behind its packet id, if all is well (MQTT 5 section 3.4.2)."""


class BufferedClient(paho.Client):
    """Reads a byte, a length and a rest from memory, where paho asks the socket for each of them.

    Each system call releases the GIL, and taking it back waits for other threads. The methods behind an underscore are
    paho's own, of 2.1 and 2.2: a later version is to be looked at before it is allowed.
    """

    _ahead = b""
    _ahead_at = 0
    _behind = b""

    @property
    def has_unread(self) -> bool:
        """Whether bytes were read from the network that are no packet yet."""
        pending = getattr(self.socket(), "pending", None)
        return self._ahead_at < len(self._ahead) or (pending is not None and pending() > 0)

    @property
    def has_unsent(self) -> bool:
        """Whether the network has not taken all that was written."""
        return bool(self._behind)

    def flush(self) -> None:
        """Give the network what it takes; OSError if it is gone."""
        while self._behind:
            try:
                sent = super()._sock_send(self._behind)
            except BlockingIOError:
                return
            self._behind = self._behind[sent:]

    def _handle_on_message(self, message: paho.MQTTMessage) -> None:
        """No callbacks by topic: the search leaves cycles of garbage, and all threads stop when it is collected."""
        if self.on_message is not None:
            self.on_message(self, self._userdata, message)

    def _handle_pubackcomp(self, cmd: Literal["PUBACK", "PUBCOMP"]) -> MQTTErrorCode:
        """The usual confirmations are not taken apart, each with a table of all reasons of its own."""
        packet = bytes(self._in_packet["packet"])
        reason = _CONFIRMED.get(packet[2:]) if cmd == "PUBACK" and len(packet) >= _PACKET_ID_BYTES else None
        if reason is None:
            return super()._handle_pubackcomp(cmd)
        with self._out_message_mutex:
            mid = int.from_bytes(packet[:2], "big")
            if mid not in self._out_messages:
                return MQTTErrorCode.MQTT_ERR_SUCCESS
            return self._do_on_publish(mid, reason, _NO_PROPERTIES)

    def _sock_recv(self, bufsize: int) -> bytes:
        at = self._ahead_at
        if at >= len(self._ahead):
            self._ahead, at = super()._sock_recv(max(bufsize, _READ_BYTES)), 0
        self._ahead_at = at + bufsize
        return self._ahead[at : at + bufsize]

    def _sock_send(self, buf: bytes | bytearray) -> int:
        if len(self._behind) > _HELD_BYTES:
            self.flush()
            if len(self._behind) > _HELD_BYTES:
                raise BlockingIOError
        self._behind += buf
        if buf[:1] and buf[0] == _DISCONNECT:
            self.flush()  # paho closes the socket after it
        return len(buf)


class NetworkLoop:
    """Runs a client's network on one thread; `wake` from others makes it write what they have published."""

    def __init__(self, client: BufferedClient) -> None:
        self._client = client
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._is_woken = False
        self._checked = 0.0

    def close(self) -> None:
        """Give the pipe back; `wake` must not be called any more."""
        os.close(self._wake_read)
        os.close(self._wake_write)

    def wake(self) -> None:
        """Something is to be written; any thread."""
        if not self._is_woken:
            self._is_woken = True
            os.write(self._wake_write, b"w")

    def step(self, timeout: float, handle: Callable[[], None]) -> MQTTErrorCode:
        """Wait for something to do, read, `handle` what came, and write; an error code once the connection is gone."""
        client = self._client
        sock = client.socket()
        if sock is None:
            return MQTTErrorCode.MQTT_ERR_NO_CONN
        has_work = client.has_unread or (client.want_write() and not client.has_unsent)
        is_readable = self._wait(sock.fileno(), 0.0 if has_work else timeout) or client.has_unread
        code = self._read() if is_readable else MQTTErrorCode.MQTT_ERR_SUCCESS
        handle()
        if code == MQTTErrorCode.MQTT_ERR_SUCCESS:
            code = self._write()
        if code == MQTTErrorCode.MQTT_ERR_SUCCESS and time.monotonic() - self._checked >= 1:
            self._checked = time.monotonic()
            code = client.loop_misc()
        return code

    def _wait(self, descriptor: int, timeout: float) -> bool:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | (select.POLLOUT if self._client.has_unsent else 0))
        poll.register(self._wake_read, select.POLLIN)
        found = dict(poll.poll(timeout * 1000))
        if self._wake_read in found:
            os.read(self._wake_read, 4096)
            self._is_woken = (
                False  # not before: a byte written in between would be gone, and nobody would wake us again
            )
        return bool(found.get(descriptor, 0) & ~select.POLLOUT)

    def _read(self) -> MQTTErrorCode:
        for _ in range(_PACKETS):
            code = self._client.loop_read()
            if code != MQTTErrorCode.MQTT_ERR_SUCCESS or not self._client.has_unread:
                return code
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _write(self) -> MQTTErrorCode:
        code = MQTTErrorCode.MQTT_ERR_SUCCESS
        if self._client.want_write():
            code = self._client.loop_write()
        try:
            self._client.flush()
        except (OSError, ValueError):
            return MQTTErrorCode.MQTT_ERR_CONN_LOST
        return code
