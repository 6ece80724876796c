from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lc_events.domain import backlog as module
from lc_events.domain.backlog import Backlog, Unconfirmed


def report(version: int) -> Unconfirmed:
    return Unconfirmed(version, "Train", 3, is_result=version % 3 > 0, time="2024-01-01T00:00:00Z")


class AsAList(RuleBasedStateMachine):
    """A backlog does what a list does, and what it was before stays as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.chunk, module._CHUNK = module._CHUNK, 4
        self.backlog = Backlog()
        self.expected: list[Unconfirmed] = []
        self.version = 0
        self.before: list[tuple[Backlog, list[Unconfirmed]]] = []

    def teardown(self) -> None:
        module._CHUNK = self.chunk

    def becomes(self, backlog: Backlog, expected: list[Unconfirmed]) -> None:
        self.before.append((self.backlog, self.expected))
        self.backlog, self.expected = backlog, expected

    @rule(gap=st.integers(1, 3))
    def add(self, gap: int) -> None:
        self.version += gap
        self.becomes(self.backlog.added(report(self.version)), [*self.expected, report(self.version)])

    @precondition(lambda self: self.version)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.integers(0, self.version + 1), max_size=6))
        self.becomes(self.backlog.without(gone), [r for r in self.expected if r.version not in gone])

    @rule()
    def keep_results(self) -> None:
        self.becomes(self.backlog.only(lambda r: r.is_result), [r for r in self.expected if r.is_result])

    @invariant()
    def is_the_same(self) -> None:
        for backlog, expected in [*self.before, (self.backlog, self.expected)]:
            assert list(backlog) == expected
        assert list(reversed(self.backlog)) == self.expected[::-1]
        assert len(self.backlog) == len(self.expected)
        assert self.backlog == Backlog(self.expected)
        held = {version for version in range(self.version + 2) if self.backlog.holds(version)}
        assert held == {r.version for r in self.expected}


TestAsAList = AsAList.TestCase


@pytest.mark.parametrize("change", ["one more", "one less"])
@given(at=st.integers(0, 9999))
def test_of_ten_thousand_reports_a_change_copies_one_chunk(change, at):
    before = Backlog(map(report, range(10_000)))
    after = before.added(report(10_000)) if change == "one more" else before.without([at])
    same = {id(chunk) for chunk in before._chunks} & {id(chunk) for chunk in after._chunks}
    assert len(same) >= len(before._chunks) - 1
