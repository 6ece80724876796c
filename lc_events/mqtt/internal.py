"""The internal broker, as KubeEdge's `internal` mode has one: rumqttd in a child process, on loopback, with a password.

It keeps nothing on disk: sessions, queues and retained messages go with it. That is sound here, for the broker is never
the record, and it lives and ends with the LC.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

from lc_events.errors import BrokerError, UsageError
from lc_events.mqtt.settings import MqttSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iotcore import Broker

__all__ = ["InternalBroker"]

_log = logging.getLogger("lc_events.mqtt")

_HOST = "127.0.0.1"
_USER = "lc-events"
_START_SECONDS = 20.0
_WATCH_SECONDS = 1.0

_CONFIG = """\
id = 0

[router]
id = 0
max_connections = 200
max_outgoing_packet_count = 200
max_segment_size = {segment_bytes}
max_segment_count = {segments}
"""
_LISTENER = """
[{version}.1]
name = "{version}"
listen = "{host}:{port}"
next_connection_delay_ms = 1
[{version}.1.connections]
connection_timeout_ms = 60000
max_payload_size = {max_payload_bytes}
max_inflight_count = 100
dynamic_filters = true
[{version}.1.connections.auth]
{user} = "{password}"
"""
_SEGMENTS = 8


class InternalBroker:
    """Starts, watches and ends the broker; user and password lie in `state_dir/broker.env`, mode 0600, and are kept.

    `port_v4` speaks MQTT 3.1.1, `port_v5` MQTT 5; 0 takes a free one. A larger payload than `max_payload_bytes` ends
    its sender's connection. For each subscribed filter up to `backlog_bytes` are kept for those who are away, and
    remembered after they have been delivered. The child ends with us, however we end.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        port_v4: int = 1884,
        port_v5: int = 1885,
        max_payload_bytes: int = 4 * 1024 * 1024,
        backlog_bytes: int = 8 * 1024 * 1024,
    ) -> None:
        """UsageError if the extra `broker` is not installed."""
        if find_spec("iotcore") is None:
            raise UsageError("the internal broker is not installed: pip install 'lc-events[broker]'")
        self._state_dir = state_dir
        self._wanted_ports = (port_v4, port_v5)
        self.port_v4 = port_v4
        self.port_v5 = port_v5
        self._max_payload_bytes = max_payload_bytes
        self._backlog_bytes = backlog_bytes
        self._password = ""
        self._broker: Broker | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def env_file(self) -> Path:
        """Where URL, user and password are kept, for people and programs on this machine."""
        return self._state_dir / "broker.env"

    @property
    def running(self) -> bool:
        """Whether the child process is there."""
        broker = self._broker
        return broker is not None and broker.is_running

    def settings(self, client_id: str | None = None) -> MqttSettings:
        """How to reach the MQTT 5 listener; only after `start`, for port and password are made there."""
        return self._settings(self.port_v5, client_id)

    def settings_3_1_1(self, client_id: str | None = None) -> MqttSettings:
        """How to reach the 3.1.1 listener."""
        return self._settings(self.port_v4, client_id)

    def start(self) -> None:
        """Start and return once both listeners answer; BrokerError if a port is taken or the broker does not start."""
        self._state_dir.mkdir(parents=True, exist_ok=True)
        self._password = _kept_password(self.env_file) or secrets.token_urlsafe(24)
        self._stopping.clear()
        for attempt in range(3):
            self.port_v4, self.port_v5 = (port or _free_port() for port in self._wanted_ports)
            try:
                self._start()
                break
            except BrokerError:
                if 0 not in self._wanted_ports or attempt == 2:
                    raise
        self._write_env()
        self._watcher = threading.Thread(target=self._watch, name="internal-broker", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """End the child; its ports are free afterwards. May be called twice."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None
        with self._lock:
            if self._broker is not None:
                self._broker.stop()
                self._broker = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _start(self) -> None:
        from iotcore import Broker  # an extra, loaded only where it is used

        for port in (self.port_v4, self.port_v5):
            _check_port(port)
        config = self._state_dir / "broker.toml"
        _write_private(config, self._config())
        broker = Broker(config_path=str(config))
        try:
            with _sigint_blocked():
                broker.start(timeout=_START_SECONDS)
        except (OSError, RuntimeError) as error:
            raise BrokerError(f"the internal broker did not start: {error}") from error
        self._broker = broker

    def _watch(self) -> None:
        while not self._stopping.wait(_WATCH_SECONDS):
            with self._lock:
                if self._broker is None or self._broker.is_running:
                    continue
                _log.error("the internal broker has died; starting it again, without its sessions and messages")
                self._broker.stop()
                try:
                    self._start()
                except BrokerError as error:
                    _log.error("%s; trying again", error)

    def _settings(self, port: int, client_id: str | None) -> MqttSettings:
        return MqttSettings(_HOST, port, username=_USER, password=self._password, client_id=client_id)

    def _config(self) -> str:
        text = _CONFIG.format(segment_bytes=max(1024, self._backlog_bytes // _SEGMENTS), segments=_SEGMENTS)
        for version, port in (("v4", self.port_v4), ("v5", self.port_v5)):
            text += _LISTENER.format(
                version=version,
                host=_HOST,
                port=port,
                max_payload_bytes=self._max_payload_bytes,
                user=_USER,
                password=self._password,
            )
        return text

    def _write_env(self) -> None:
        url = f"mqtt://{_USER}:{self._password}@{_HOST}"
        lines = (
            f"LC_MQTT_URL={url}:{self.port_v5}",
            f"LC_MQTT_URL_3_1_1={url}:{self.port_v4}",
            f"LC_MQTT_USER={_USER}",
            f"LC_MQTT_PASSWORD={self._password}",
        )
        _write_private(self.env_file, "\n".join([*lines, ""]))


def _kept_password(env_file: Path) -> str | None:
    """The password of the last start, so that devices need not be told a new one."""
    try:
        lines = env_file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{env_file} cannot be read ({error}): repair or remove it") from None
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    password = values.get("LC_MQTT_PASSWORD", "")
    if len(password) < 16 or not password.replace("-", "").replace("_", "").isalnum() or not password.isascii():
        return None
    return password


def _write_private(path: Path, text: str) -> None:
    """Replace the file at once, readable by nobody else at any moment."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind((_HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def _check_port(port: int) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((_HOST, port))
        except OSError as error:
            raise BrokerError(
                f"the internal broker cannot listen on {_HOST}:{port} ({(error.strerror or str(error)).lower()}): "
                "does another LC or broker run here? LC_MQTT_MODE=external uses a running one",
                code="port_taken",
            ) from None


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """The child inherits the mask: Ctrl-C in a terminal must not end it before the LC has said goodbye through it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
