"""A sender and a listener that cost next to nothing: MQTT 3.1.1 packets on a socket, made before the clock runs."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator

PUBLISH, PUBACK, SUBACK = 3, 4, 9


def _packet(kind: int, body: bytes) -> bytes:
    length, size = b"", len(body)
    while True:
        size, digit = divmod(size, 128)
        length += bytes([digit | (0x80 if size else 0)])
        if not size:
            return bytes([kind]) + length + body


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("!H", len(data)) + data


def publish_packet(mid: int, topic: str, payload: bytes) -> bytes:
    """PUBLISH with QoS 1."""
    return _packet(0x32, _text(topic) + struct.pack("!H", mid) + payload)


class RawClient:
    """One connection; `on_message` gets topic, payload and the moment of arrival, on a thread of its own."""

    def __init__(self, port: int, name: str, on_message: Callable[[bytes, bytes, float], None] | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._on_message = on_message
        self.acknowledged = 0
        self._subscribed = threading.Event()
        self._socket.sendall(_packet(0x10, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name)))
        threading.Thread(target=self._read, daemon=True).start()

    def subscribe(self, topic_filter: str) -> None:
        self._socket.sendall(_packet(0x82, b"\x00\x01" + _text(topic_filter) + b"\x01"))
        assert self._subscribed.wait(10)

    def send(self, packets: Iterable[bytes]) -> None:
        self._socket.sendall(b"".join(packets))

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> None:
        buffer = b""
        while True:
            try:
                data = self._socket.recv(1 << 18)
            except OSError:
                return
            if not data:
                return
            buffer += data
            now, answers, used = time.perf_counter(), [], 0
            for kind, flags, start, end in _packets(buffer):
                used = end
                if kind == PUBLISH:
                    after = start + 2 + struct.unpack_from("!H", buffer, start)[0]
                    if flags & 6:
                        answers.append(b"\x40\x02" + buffer[after : after + 2])
                        payload = buffer[after + 2 : end]
                    else:
                        payload = buffer[after:end]
                    if self._on_message is not None:
                        self._on_message(buffer[start + 2 : after], payload, now)
                elif kind == PUBACK:
                    self.acknowledged += 1
                elif kind == SUBACK:
                    self._subscribed.set()
            buffer = buffer[used:]
            if answers:
                with contextlib.suppress(OSError):
                    self._socket.sendall(b"".join(answers))


def _packets(buffer: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Kind, flags, start and end of the body of each whole packet."""
    at = 0
    while at + 2 <= len(buffer):
        length, shift, body = 0, 0, at + 1
        while body < len(buffer):
            length |= (buffer[body] & 0x7F) << shift
            shift += 7
            body += 1
            if not buffer[body - 1] & 0x80:
                break
        else:
            return
        if body + length > len(buffer):
            return
        yield buffer[at] >> 4, buffer[at] & 0x0F, body, body + length
        at = body + length
