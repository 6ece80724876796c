from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lc_events.errors import RefusedError
from lc_events.workers.executables import resolve_executable

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize("name", ["python", "python3"])
def test_python_is_the_interpreter_of_the_agent(name: str):
    assert resolve_executable(name, ("python", "python3"), PATH) == sys.executable


@pytest.mark.parametrize(
    "name", ["sh", "/usr/bin/python3", "./python", "../python", "python ", "PYTHON", "", "python\0", "a/../python"]
)
def test_what_is_not_listed_word_for_word_is_refused(name: str):
    with pytest.raises(RefusedError, match="WORKER_ALLOW") as caught:
        resolve_executable(name, ("python", "python3"), PATH)
    assert caught.value.code == "not_allowed"


def test_a_listed_name_is_looked_up_on_the_path_of_the_agent():
    assert resolve_executable("sh", ("sh",), PATH) in ("/usr/bin/sh", "/bin/sh")


def test_a_listed_path_is_taken_as_it_is(tmp_path: Path):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert resolve_executable(str(tool), (str(tool),), PATH) == str(tool)


def test_a_relative_path_is_refused_even_if_listed():
    with pytest.raises(RefusedError, match="neither a bare name nor an absolute path"):
        resolve_executable("bin/tool", ("bin/tool",), PATH)


def test_a_listed_executable_that_does_not_exist_is_named():
    with pytest.raises(RefusedError, match="no such executable"):
        resolve_executable("no-such-tool", ("no-such-tool",), PATH)


def test_what_a_refused_word_expands_to_is_not_said():
    with pytest.raises(RefusedError) as refusal:
        resolve_executable("S3cr3t", ("python",), PATH, written="$(DB_TOKEN)")
    assert "S3cr3t" not in str(refusal.value)
    assert "$(DB_TOKEN)" in str(refusal.value)
