"""The map of the rooms in docs/explanation/how-it-works.md is true: every room is on it, and imports point down."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "lc_events"
ROW = re.compile(r"^\| ((?:`[a-z]+`(?:, )?)+) \| .+ \|$", re.MULTILINE)


def rows():
    """The rooms of each row, from above."""
    page = (ROOT / "docs/explanation/how-it-works.md").read_text(encoding="utf-8")
    section = page.split("## The rooms")[1].split("\n## ")[0]
    return [re.findall(r"`([a-z]+)`", row) for row in ROW.findall(section)]


def rooms():
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def modules(folder):
    """The modules of ours that modules below a folder import from, and which module does."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lc_events."):
                yield node.module, path.relative_to(PACKAGE)


def imported(room):
    """The rooms from which modules of a room import, and which module does."""
    for module, path in modules(PACKAGE / room):
        name = module.split(".")[1]
        if (PACKAGE / name).is_dir() and name != room:
            yield name, path


def test_every_room_is_on_the_map_once():
    assert sorted(room for row in rows() for room in row) == rooms()


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_from_rooms_below_its_own(room):
    row = next(number for number, row in enumerate(rows()) if room in row)
    below = {other for further in rows()[row + 1 :] for other in further}

    assert [(name, path) for name, path in imported(room) if name not in below] == []


def test_only_who_answers_questions_reads_audits():
    """What loads, decides and restores gets on without them: they come and go with what is asked of a history."""
    audit = "lc_events.application.audit."
    readers = {path.as_posix() for module, path in modules(PACKAGE) if module.startswith(audit)}
    others = {path for path in readers if not path.startswith(("application/audit/", "cli/", "report/"))}

    assert others == {"controller/asking.py"}
