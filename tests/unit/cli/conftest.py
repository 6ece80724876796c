from __future__ import annotations

import subprocess
import sys

import pytest
from support.program import Ended

from lc_events.cli.main import main


@pytest.fixture
def lc_events(capsys):
    """Run a command line in this process, as in `lc_events("--version")`."""

    def run(*args, **options):
        with pytest.raises(SystemExit) as ended:
            main([str(arg) for arg in args], **options)
        return Ended(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def python():
    """Run Python code in a process of its own."""

    def run(code, **options):
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60, **options
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
