"""Loopback ports for servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A loopback port that nobody listened on a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Whether something accepts connections on that loopback port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
