from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given as for_any
from hypothesis import strategies as st

from lc_events.cli.moments import read_duration, read_time, show_time
from lc_events.errors import UsageError

NOW = datetime(2026, 5, 9, 6, 30, tzinfo=UTC)
"""Half past eight in Berlin."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-09T03:00:00Z", "2026-05-09T03:00:00"),
        ("2026-05-09t03:00:00z", "2026-05-09T03:00:00"),
        ("2026-05-09T03:00:00.123456+02:00", "2026-05-09T01:00:00.123456"),
        ("2026-05-09 03:00", "2026-05-09T01:00:00"),
        ("2026-05-09", "2026-05-08T22:00:00"),
        ("2026-01-09 03:00", "2026-01-09T02:00:00"),
        ("now", "2026-05-09T06:30:00"),
        ("2h", "2026-05-09T04:30:00"),
        ("1h30m", "2026-05-09T05:00:00"),
        ("1w2d", "2026-04-30T06:30:00"),
        ("today", "2026-05-08T22:00:00"),
        ("today 03:00", "2026-05-09T01:00:00"),
        ("yesterday", "2026-05-07T22:00:00"),
        ("yesterday 03:00", "2026-05-08T01:00:00"),
        ("08:15", "2026-05-09T06:15:00"),
        ("08:45", "2026-05-08T06:45:00"),
        (" 08:15:30 ", "2026-05-09T06:15:30"),
    ],
)
def test_a_time_is_read_as_people_write_it(text, expected):
    assert read_time(text, now=NOW, zone="Europe/Berlin") == datetime.fromisoformat(f"{expected}Z")


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "3", "-2h", "2 h", "2h ago", "25:00", "9:00", "2026-13-01", "2026-02-30T00:00Z", "tomorrow"),
        *(
            "2h\n3",
            "20260509",
            "2026-W19-6",
            "2026-05-09T03:00:00+0200",
            "yesterday 3pm",
            "999999999w",
            "2026-05-09T03Z",
        ),
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(text):
    with pytest.raises(UsageError, match="is not a time: give RFC 3339 as"):
        read_time(text, now=NOW, zone="UTC")


@for_any(st.text(max_size=30))
def test_no_text_is_more_than_refused(text):
    with suppress(UsageError):
        assert read_time(text, now=NOW, zone="Europe/Berlin").tzinfo is UTC


@for_any(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9000, 1, 1)))  # noqa: DTZ001
def test_what_events_carry_is_read_exactly(moment):
    moment = moment.replace(tzinfo=UTC)

    assert read_time(moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), now=NOW, zone="Asia/Tokyo") == moment


def test_a_duration_adds_its_parts():
    assert read_duration("1d2h3m4s") == timedelta(days=1, hours=2, minutes=3, seconds=4)
    with pytest.raises(UsageError, match="is not a duration"):
        read_duration("1y")


def test_a_time_is_shown_by_the_wall_clock_of_a_zone():
    assert show_time("2026-05-09T06:30:00.123456Z", "Europe/Berlin") == "2026-05-09 08:30:00.123"
    assert show_time("not a time", "UTC") == "not a time"
