from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.local_controller import ControllerProcess
from support.mosquitto import Mosquitto, find_mosquitto
from support.played_gm import PlayedGm, deployed, evaluated, trained
from support.waiting import eventually

PROJECT = Path(__file__).parents[3]
PAGE = PROJECT / "docs" / "how-to" / "subscribe.md"

EXPECTED = [
    "sedna/state/edge1/heads/default/digits {",
    '"url":"/output/digits/deploy/index.pkl"',
    "round 1 is in use",
    "the model of round 1 is in use",
    '"subject":"default/lifelonglearningjob/digits"',
    "WorkerResultReceived",
    '"hash":"',
    '"next_version":3',
    '"version":1',
    "chain checked",
    "",
    "default/digits",
]
"""What the command of each block of the page says, in the order of the page."""

COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder like a clone in which a controller has run: the page's commands run there."""
    for program in ("mosquitto_sub", "mosquitto_rr", "jq"):
        if find_mosquitto() is None or shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(PROJECT / "examples")
    with (
        Mosquitto(folder / "broker") as broker,
        ControllerProcess(folder, port=broker.port, topic_root="sedna") as lc,
    ):
        for client in ("mosquitto_sub", "mosquitto_rr"):
            (folder / client).write_text(f"-p {broker.port}\n")
        gm = PlayedGm(lc)
        lc.write("/data/ds.txt", "".join(f"a{i} 0\n" for i in range(10)))
        gm.dataset()
        gm.job("digits")
        gm.next_up()
        gm.next_up()
        gm.move(*trained(1, "digits"), name="digits")
        gm.next_up()
        lc.write("/output/digits/eval/1/index.pkl", "a model")
        gm.move(*evaluated(1, "digits"), name="digits")
        gm.next_up()
        gm.move(*deployed(1), name="digits")
        eventually(lambda: (lc.job("digits") or {}).get("stage") == "Train")
        yield Clone(folder, broker.port, lc, gm)


class Clone:
    def __init__(self, folder, port, lc, gm):
        self._folder = folder
        self._lc = lc
        self._gm = gm
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(folder),
            "MQTT_URL": f"mqtt://127.0.0.1:{port}",
            "LC_MQTT_URL": f"mqtt://127.0.0.1:{port}",
            "LC_STATE_DIR": str(lc.state_dir),
        }

    def run(self, command, expected):
        """Run until it says what is expected, while the job lives on, and end it as Ctrl-C does."""
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            os.set_blocking(process.stdout.fileno(), False)
            said = b""

            def is_done():
                nonlocal said
                if process.poll() is None:
                    self._gm.result(ownerName="digits", status="running", id=os.urandom(8).hex())
                said += process.stdout.read() or b""
                return process.poll() is not None or (expected and expected.encode() in said)

            try:
                eventually(is_done, 20, command)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{said.decode()}") from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGINT)
            said += process.stdout.read() or b""
            if not (expected and expected.encode() in said):
                assert process.wait(10) == 0, said
        assert expected in said.decode(), said


def test_each_command_of_the_page_is_tried():
    assert len(COMMANDS) == len(EXPECTED)


@pytest.mark.parametrize(("command", "expected"), [*zip(COMMANDS, EXPECTED, strict=False)], ids=lambda _: "")
def test_the_command_does_what_the_page_says(clone, command, expected):
    clone.run(command, expected)
