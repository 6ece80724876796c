from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given as for_any
from hypothesis import strategies as st

import lc_events
from lc_events.domain.stamp import stamp

MOMENTS = st.datetimes(timezones=st.just(UTC))


@for_any(MOMENTS, MOMENTS)
def test_texts_sort_as_their_times_do_in_any_year(one, other):
    assert (stamp(one) < stamp(other)) is (one < other)


@for_any(MOMENTS)
def test_a_text_is_27_characters_and_says_the_moment(moment):
    assert len(stamp(moment)) == 27
    assert datetime.fromisoformat(stamp(moment)) == moment


def test_nobody_else_writes_times_with_microseconds():
    modules = Path(lc_events.__file__).parent.rglob("*.py")
    assert [path.name for path in modules if re.search(r"strftime\([^)]*%f", path.read_text(encoding="utf-8"))] == []
