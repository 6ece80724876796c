from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import typer

from lc_events import __version__, errors


def commands_that(action):
    """A command line with one command, `act`."""
    commands = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    commands.callback()(lambda: None)
    commands.command("act")(action)
    return commands


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.LcError("text"), 1),
        (errors.StorageError("text"), 1),
        (errors.RefusedError("text"), 1),
        (errors.UsageError("text"), 2),
        (errors.NotFoundError("text"), 3),
        (errors.ConflictError("text"), 4),
        (errors.IntegrityError("text"), 5),
        (errors.BrokerError("text"), 6),
        (errors.StoreError("text"), 6),
    ],
)
def test_each_error_has_its_exit_code_and_one_line(lc_events, error, code):
    def act():
        raise error

    assert lc_events("act", commands=commands_that(act)) == (code, "", "lc-events: text\n")


def test_a_traceback_is_shown_only_when_debugging(lc_events, monkeypatch):
    def act():
        raise errors.NotFoundError("text\x1b[31m")

    monkeypatch.setenv("LC_LOG", "debug")
    result = lc_events("act", commands=commands_that(act))

    assert result.code == 3
    assert "Traceback" in result.err
    assert result.err.endswith("\nlc-events: text\\x1b[31m\n")


def test_control_c_is_130_without_a_traceback(lc_events):
    def act():
        raise KeyboardInterrupt

    assert lc_events("act", commands=commands_that(act)) == (130, "", "")


def test_control_c_in_a_running_program_is_130(tmp_path):
    code = "import time\ndef act():\n    print('ready', flush=True)\n    time.sleep(60)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}\n{_RUN}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == ""


_RUN = """
import typer
from lc_events.cli.main import main
commands = typer.Typer()
commands.command()(act)
main([], commands=commands)
"""


def test_a_reader_that_goes_away_is_no_traceback():
    code = "def act():\n    for number in range(100_000):\n        typer.echo(number)\n"
    pipeline = f'"{sys.executable}" -c "$0" | head -n 1'
    done = subprocess.run(
        ["bash", "-c", pipeline, f"{code}\n{_RUN}"], check=False, capture_output=True, text=True, timeout=60
    )

    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("args", [["--colour"], ["no-such-command"]])
def test_a_wrong_command_line_is_usage(lc_events, args):
    result = lc_events(*args)

    assert result.code == 2
    assert result.err.startswith("Usage: lc-events")


def test_the_version_is_that_of_the_package(lc_events):
    assert lc_events("--version") == (0, f"lc-events {__version__}\n", "")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_plain_text(lc_events, flag, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = lc_events(flag)

    assert result.code == 0
    assert result.out.startswith("Usage: lc-events [OPTIONS] COMMAND")
    assert "\x1b" not in result.out


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "lc_events", "--version"], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, f"lc-events {__version__}\n")


HEAVY = {"boto3", "botocore", "eventsourcing", "paho", "pydantic", "pydantic_settings", "rich", "sklearn", "watchfiles"}


def test_help_imports_nothing_heavy(python):
    """Else `lc-events --help` would take a second on a small device."""
    code = f"import sys, lc_events.cli.main; print(sorted({HEAVY} & sys.modules.keys()))"

    assert python(code) == (0, "[]\n", "")
