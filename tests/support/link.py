"""A TCP link between two loopback ports that a test can cut and mend."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

from support.ports import free_port


class Link:
    """Connections to `port` go on to `target`; while it is cut there are none, and new ones are refused.

    Before it hands on what `breaks_at` is true of, it ends that one connection instead.
    """

    def __init__(self, target: int, breaks_at: Callable[[bytes], bool] = lambda _: False) -> None:
        self.port = free_port()
        self._target = target
        self._breaks_at = breaks_at
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._ends: set[socket.socket] = set()

    def mend(self) -> None:
        """Let connections through."""
        listener = socket.create_server(("127.0.0.1", self.port))
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """End all connections and take no new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            ends = list(self._ends)
            self._ends.clear()
        for end in (listener, *ends):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            with self._lock:
                if self._listener is not listener:
                    near.close()
                    far.close()
                    return
                self._ends |= {near, far}
            for source, sink in ((near, far), (far, near)):
                with contextlib.suppress(OSError):  # cut meanwhile
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(65536)) and not self._breaks_at(data):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with self._lock:
            self._ends -= {source, sink}
