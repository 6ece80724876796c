"""A device on the edge: it works with the newest model of a job, and swaps it when another one is announced.

It knows only the broker of its own node. So it goes on when the cloud is away, and also, with the model that it has,
when that broker is; what was announced meanwhile it hears when it is back. Needs paho-mqtt; for models in S3 boto3 too.

    python device.py default/digits --node edge1 --files root --run "python ../digits/infer.py --once"
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import secrets
import shlex
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import paho.mqtt.client as paho
from model import Announcement, KeptModel, NotReadableError, OtherFileError
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode

RETRY_SECONDS = 5.0
PORTS = {"mqtt": 1883, "mqtts": 8883}


class Device:
    """Keeps its copy of the model up to date and runs a command with it, on the thread of `run`."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        namespace, _, name = arguments.job.rpartition("/")
        self._topic = f"{arguments.root}/state/{arguments.node}/models/{namespace or 'default'}/{name}"
        self._files: Path = arguments.files
        self._command = shlex.split(arguments.run)
        self._once: bool = arguments.once
        self._model = KeptModel(arguments.model)
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._wanted: Announcement | None = None
        self._trouble = ""
        self._try_at = 0.0
        self._is_done = False
        self._has_failed = False
        self._is_orphan = False
        self._client = self._made_client(arguments)

    def run(self) -> int:
        """Work until interrupted, or with --once until the announced model was tried; 1 if that failed."""
        if self._model.announcement is not None:
            say(f"going on with the model of round {self._model.announcement.round}")
            self._use()
        self._client.loop_start()
        try:
            while not (self._once and self._is_done):
                with contextlib.suppress(queue.Empty):
                    self._hear(self._inbox.get(timeout=1.0))
                if self._inbox.empty():  # of several announcements only the newest matters
                    self._swap()
        finally:
            self._client.disconnect()
            self._client.loop_stop()
        return int(self._has_failed)

    def _hear(self, payload: bytes) -> None:
        self._wanted, self._trouble, self._try_at = None, "", 0.0
        if not payload:
            # from a job that was deleted, or has not deployed one yet; it comes more than once
            if self._model.announcement is not None and not self._is_orphan:
                say("the job has no model any more; its last one stays in use")
            self._is_orphan = True
            return
        self._is_orphan = False
        try:
            announced = Announcement.read(payload)
        except (ValueError, KeyError, TypeError) as error:
            say(f"an announcement was not understood: {error!r}")
            return
        kept = self._model.announcement
        if kept is not None and kept.sha256 == announced.sha256:  # retained announcements come again
            self._is_done = True
        else:
            self._wanted = announced

    def _swap(self) -> None:
        """Get the announced model, if there is one to get and it is time to try."""
        wanted = self._wanted
        if wanted is None or time.monotonic() < self._try_at:
            return
        try:
            self._model.replace(wanted, self._files)
        except OtherFileError as error:
            say(f"not the model of round {wanted.round}: {error}{self._what_next('waiting for the next announcement')}")
            self._wanted = None
        except NotReadableError as error:
            if str(error) != self._trouble:
                say(f"the model of round {wanted.round}: {error}{self._what_next('trying again')}")
            self._trouble, self._try_at = str(error), time.monotonic() + RETRY_SECONDS
        else:
            say(f"the model of round {wanted.round} is in use: {wanted.size} bytes, SHA-256 {wanted.sha256[:12]}")
            self._wanted = None
            self._is_done = True
            self._use()

    def _what_next(self, plan: str) -> str:
        """After a failure: the plan, in words; with --once there is none."""
        if not self._once:
            return f"; {plan}"
        self._is_done = self._has_failed = True
        return ""

    def _use(self) -> None:
        """Here a real device would load the model into the program that it runs all the time."""
        if not self._command:
            return
        try:
            done = subprocess.run([*self._command, str(self._model.path)], check=False)  # noqa: S603 - the user's own
        except OSError as error:
            say(f"{self._command[0]}: {error.strerror}")
        else:
            if done.returncode:
                say(f"{self._command[0]} ended with {done.returncode}")

    def _made_client(self, arguments: argparse.Namespace) -> paho.Client:
        """A client without a session: the retained announcement comes again with each connection."""
        url = urlsplit(arguments.url)
        protocol = MQTTProtocolVersion.MQTTv5 if arguments.mqtt == "5" else MQTTProtocolVersion.MQTTv311
        client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"device-{secrets.token_hex(8)}", protocol=protocol)
        password = arguments.password_file.read_text().strip() if arguments.password_file else url.password
        if url.username:
            client.username_pw_set(unquote(url.username), unquote(password) if password else None)
        if url.scheme == "mqtts":
            client.tls_set(arguments.ca_file, arguments.cert_file, arguments.key_file)
        client.reconnect_delay_set(1, 30)
        client.on_connect = self._on_connect
        client.on_message = lambda _client, _data, message: self._inbox.put(bytes(message.payload))
        client.connect_async(
            url.hostname or "127.0.0.1",
            url.port or PORTS.get(url.scheme, 1883),
            # in MQTT 5 said with each connection; paho by itself says it only with the first
            clean_start=True if arguments.mqtt == "5" else paho.MQTT_CLEAN_START_FIRST_ONLY,
        )
        return client

    def _on_connect(
        self, client: paho.Client, _data: object, _flags: object, reason: ReasonCode, _properties: object
    ) -> None:
        if reason.is_failure:
            say(f"the broker refuses us: {reason}")
        else:
            client.subscribe(self._topic, qos=1)


def say(words: str) -> None:
    """A line on standard output; text of others cannot command the terminal."""
    print(f"device: {ascii(words)[1:-1]}", flush=True)


def main() -> int:
    """Run until Ctrl-C, or as --once says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    url = os.environ.get("MQTT_URL", "mqtt://127.0.0.1:1883")
    parser.add_argument("job", help="NAMESPACE/NAME, or NAME in the namespace default")
    parser.add_argument("--node", required=True, help="the edge node whose controller has the job")
    parser.add_argument("--files", type=Path, default=Path("/"), help="where the node's LC_ROOT is mounted (/)")
    parser.add_argument("--model", type=Path, default=Path("model.pkl"), help="the device's own copy (model.pkl)")
    parser.add_argument("--run", default="", metavar="COMMAND", help="run for each model, its file the last argument")
    parser.add_argument("--once", action="store_true", help="try the announced model once, then end")
    parser.add_argument("--root", default="sedna", help="root of all topics (default: sedna)")
    parser.add_argument("--url", default=url, help="mqtt:// or mqtts://[USER[:PASSWORD]@]HOST[:PORT] [MQTT_URL]")
    parser.add_argument("--mqtt", choices=("5", "3.1.1"), default="5", help="version of the protocol (default: 5)")
    for name, what in (
        ("password", "the password of the user in the URL"),
        ("ca", "CA certificates, for mqtts"),
        ("cert", "our certificate"),
        ("key", "its key"),
    ):
        parser.add_argument(f"--{name}-file", type=Path, metavar="FILE", help=f"file with {what}")
    try:
        return Device(parser.parse_args()).run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
