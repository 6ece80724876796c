"""A proxy before an S3 server: it counts what passes, and misbehaves where a test wants it to."""

from __future__ import annotations

import http.client
import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit

CHUNK = 65536


@dataclass
class Passed:
    """One request, when it came (monotonic), and how many bytes of body went each way."""

    method: str
    key: str
    query: str
    headers: dict[str, str]
    received: int = 0
    answered: int = 0
    status: int = 0
    at: float = field(default_factory=time.monotonic)

    @property
    def is_copy(self) -> bool:
        """Whether the server was asked to copy."""
        return "x-amz-copy-source" in self.headers


@dataclass
class Fault:
    """How an answer goes wrong: `status` and `code` refuse, `cut_after` ends it after so many bytes (0: it was
    done, and nothing is said of it), `stall` gives none.

    `held` is set when a request stalls; it goes on when `release` is set (or ends with the proxy).
    """

    status: int = 0
    code: str = ""
    cut_after: int | None = None
    stall: bool = False
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


Rule = Callable[[Passed], Fault | None]


class S3Proxy:
    """Passes requests on to `upstream` (HOST:PORT); the first rule that returns a fault decides an answer."""

    def __init__(
        self,
        upstream: str,
        *,
        family: socket.AddressFamily = socket.AF_INET,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.upstream = upstream
        self._tls = tls
        self._family = family
        self._port = 0
        self._server: _Server | None = None
        self._rules: list[Rule] = []
        self._faults: list[Fault] = []
        self.passed: list[Passed] = []

    @property
    def endpoint(self) -> str:
        """HOST:PORT."""
        return f"[::1]:{self._port}" if self._family == socket.AF_INET6 else f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, on the port of the last time if there was one."""
        self._server = _Server(self, self._family, self._port)
        self._port = self._server.server_port
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and break those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.break_off()

    def fail(self, fault: Fault, when: Callable[[Passed], bool] = lambda _: True, *, times: int | None = None) -> Fault:
        """Apply a fault to requests for which `when` is true, always or only the first `times`."""
        self._faults.append(fault)
        left = [times]
        lock = threading.Lock()

        def rule(passed: Passed) -> Fault | None:
            with lock:
                if left[0] == 0 or not when(passed):
                    return None
                if left[0] is not None:
                    left[0] -= 1
            return fault

        self._rules.append(rule)
        return fault

    def heal(self) -> None:
        """No faults any more; what stalls goes on."""
        self._rules.clear()
        for fault in self._faults:
            fault.release.set()

    def forward(self, handler: _Handler) -> None:
        """Answer one request."""
        parts = urlsplit(handler.path)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        passed = Passed(handler.command, unquote(parts.path), parts.query, headers, received=len(body))
        self.passed.append(passed)
        fault = next((found for rule in list(self._rules) if (found := rule(passed)) is not None), None)
        if fault is not None and fault.stall:
            fault.held.set()
            if not fault.release.wait(60):
                handler.close_connection = True
                return
        if fault is not None and fault.status:
            passed.status = fault.status
            handler.refuse(fault.status, fault.code)
            return
        self._pass_on(handler, passed, body, None if fault is None else fault.cut_after)

    def _pass_on(self, handler: _Handler, passed: Passed, body: bytes, cut_after: int | None) -> None:
        upstream = http.client.HTTPConnection(self.upstream, timeout=60)
        try:
            upstream.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() not in ("expect", "connection"):
                    upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            passed.status = answer.status
            if cut_after == 0:
                handler.close_connection = True
                return
            handler.begin(answer)
            while chunk := answer.read(CHUNK):
                if cut_after is not None and passed.answered + len(chunk) > cut_after:
                    handler.wfile.write(chunk[: cut_after - passed.answered])
                    handler.close_connection = True
                    return
                handler.wfile.write(chunk)
                passed.answered += len(chunk)
        except (OSError, http.client.HTTPException):
            handler.close_connection = True
        finally:
            upstream.close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _answer(self) -> None:
        self.server.proxy.forward(self)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - names of http.server

    def begin(self, answer: http.client.HTTPResponse) -> None:
        """Pass on status and headers; a body of unknown length ends with the connection."""
        self.send_response_only(answer.status)
        has_length = answer.status in (204, 304)
        for name, value in answer.getheaders():
            if name.lower() in ("connection", "transfer-encoding"):
                continue
            has_length = has_length or name.lower() == "content-length"
            self.send_header(name, value)
        if not has_length:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()

    def refuse(self, status: int, code: str) -> None:
        """Answer as S3 does."""
        body = f"<Error><Code>{code}</Code><Message>refused by the test</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, proxy: S3Proxy, family: socket.AddressFamily, port: int) -> None:
        self.proxy = proxy
        self.address_family = family
        self._open: set[socket.socket] = set()
        super().__init__(("::1" if family == socket.AF_INET6 else "127.0.0.1", port), _Handler)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self._open.add(request)
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_: object) -> None:
        pass

    def break_off(self) -> None:
        for each in list(self._open):
            self.shutdown_request(each)
