"""The codes on `sedna/errors/NODE` in docs/reference/topics.md are those that the code refuses messages with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "topics.md"
ROOMS = ("controller", "messages", "mqtt")
"""Where messages are refused; what other rooms raise answers a question or ends a command."""

ANSWERS = {"ending"}
"""Codes that these rooms only answer a request with."""

REPORTS = {"doctor"}
"""Codes that another room publishes itself."""


def documented() -> set[str]:
    section = PAGE.read_text(encoding="utf-8").split("## Codes on `errors`")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    return {code for row in rows for code in re.findall(r"`(\w+)`", row)}


def refusals() -> Iterator[tuple[Path, ast.Module, ast.Call]]:
    """Where a RefusedError is made, or a report without one, and the module that it stands in."""
    for room in ROOMS:
        for path in (ROOT / "lc_events" / room).rglob("*.py"):
            module = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(module):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                    "RefusedError",
                    "self._desk.refusals.report",
                ):
                    yield path, module, node


def codes_of(module: ast.Module, call: ast.Call) -> set[str]:
    """The codes that a call may give, which stand there, or as a constant of the module; none if they do not."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "code"), ast.Constant("malformed"))
    values = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
    constants = {
        assignment.targets[0].id: assignment.value
        for assignment in module.body
        if isinstance(assignment, ast.Assign) and isinstance(assignment.targets[0], ast.Name)
    }
    found = [constants.get(value.id, value) if isinstance(value, ast.Name) else value for value in values]
    return {str(value.value) for value in found if isinstance(value, ast.Constant)}


def test_a_code_stands_where_the_message_is_refused():
    unsaid = [f"{path.name}:{call.lineno}" for path, module, call in refusals() if not codes_of(module, call)]
    assert unsaid == []


def test_the_page_has_each_code_and_no_other():
    codes = {code for _, module, call in refusals() for code in codes_of(module, call)}
    assert documented() == (codes - ANSWERS) | REPORTS
