from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lc_events.domain.window import Minutes, is_open, next_opening, show_window

BERLIN = "Europe/Berlin"
ZONES = ("UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")

minutes = st.tuples(st.integers(0, 1439), st.integers(0, 1440))
moments = st.datetimes(datetime(2009, 1, 1), datetime(2031, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))  # noqa: DTZ001 - made aware at once
near_changes = st.builds(
    lambda base, offset: base + timedelta(minutes=offset),
    st.sampled_from(
        [
            datetime(2024, 3, 31, 1, tzinfo=UTC),
            datetime(2024, 10, 27, 1, tzinfo=UTC),
            datetime(2024, 3, 10, 7, tzinfo=UTC),
            datetime(2024, 4, 6, 15, tzinfo=UTC),
            datetime(2011, 12, 30, 10, tzinfo=UTC),
        ]
    ),
    st.integers(-3000, 3000),
)


def at(text: str, zone: str = BERLIN, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)


def window(start: str, end: str) -> Minutes:
    first, last = (int(t[:2]) * 60 + int(t[3:]) for t in (start, end))
    return first, last


@pytest.mark.parametrize("clock", ["02:00", "02:00:59", "03:30", "04:00", "04:00:59"])
def test_a_window_is_open_from_its_first_to_its_last_minute(clock: str):
    assert is_open(window("02:00", "04:00"), BERLIN, at(f"2024-01-10T{clock}"))


@pytest.mark.parametrize("clock", ["01:59:59", "04:01", "14:00", "00:00"])
def test_a_window_is_closed_otherwise(clock: str):
    assert not is_open(window("02:00", "04:00"), BERLIN, at(f"2024-01-10T{clock}"))


def test_the_wall_clock_is_that_of_the_zone():
    moment = datetime(2024, 1, 10, 1, 30, tzinfo=UTC)
    assert is_open(window("02:00", "04:00"), BERLIN, moment)
    assert not is_open(window("02:00", "04:00"), "UTC", moment)


@pytest.mark.parametrize(
    ("clock", "open_"),
    [("22:00", True), ("23:59", True), ("00:00", True), ("05:00", True), ("05:01", False), ("21:59", False)],
)
def test_a_window_across_midnight_is_one_window(clock: str, open_: bool):
    assert is_open(window("22:00", "05:00"), BERLIN, at(f"2024-01-10T{clock}")) is open_


@pytest.mark.parametrize(("clock", "open_"), [("23:59:59", True), ("23:00", True), ("00:00", False), ("22:59", False)])
def test_24_00_is_the_end_of_the_day(clock: str, open_: bool):
    assert is_open(window("23:00", "24:00"), BERLIN, at(f"2024-01-10T{clock}")) is open_


def test_from_00_00_to_24_00_it_is_always_open():
    assert all(is_open((0, 1440), BERLIN, at("2024-01-10T00:00") + timedelta(minutes=m)) for m in range(1440))


def opened(minutes_: Minutes, day: str, zone: str = BERLIN) -> int:
    """Minutes of real time that the window is open, from noon before the day to noon of the day."""
    noon = (at(f"{day}T12:00", zone) - timedelta(days=1)).astimezone(UTC)
    return sum(is_open(minutes_, zone, noon + timedelta(minutes=m)) for m in range(26 * 60))


def test_a_time_that_does_not_exist_opens_nothing_that_day():
    assert opened(window("02:10", "02:40"), "2024-03-31") == 0
    assert opened(window("02:10", "02:40"), "2024-03-30") == 31


def test_a_time_that_is_doubled_is_open_twice():
    assert opened(window("02:10", "02:40"), "2024-10-27") == 62
    assert is_open(window("02:10", "02:40"), BERLIN, at("2024-10-27T02:20", fold=0))
    assert is_open(window("02:10", "02:40"), BERLIN, at("2024-10-27T02:20", fold=1))


def test_a_window_whose_start_is_skipped_opens_when_the_clock_jumps_into_it():
    before = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
    assert next_opening(window("02:30", "03:30"), BERLIN, before) == datetime(2024, 3, 31, 1, 0, tzinfo=UTC)


def test_a_doubled_window_opens_a_second_time_an_hour_later():
    first = next_opening(window("02:10", "02:40"), BERLIN, at("2024-10-27T00:00"))
    assert first == datetime(2024, 10, 27, 0, 10, tzinfo=UTC)
    assert next_opening(window("02:10", "02:40"), BERLIN, first) == datetime(2024, 10, 27, 1, 10, tzinfo=UTC)


def test_a_window_that_does_not_exist_today_opens_tomorrow():
    assert next_opening(window("02:10", "02:40"), BERLIN, at("2024-03-31T00:00")) == at("2024-04-01T02:10")


def test_the_next_opening_lies_on_a_full_minute():
    moment = datetime(2024, 1, 10, 12, 34, 56, 789, tzinfo=UTC)
    assert next_opening(window("02:00", "03:00"), "UTC", moment) == datetime(2024, 1, 11, 2, 0, tzinfo=UTC)


def test_a_window_that_is_always_open_never_opens():
    assert next_opening((0, 1440), BERLIN, at("2024-01-10T12:00")) is None


def minute_by_minute(minutes_: Minutes, zone: str, moment: datetime) -> datetime | None:
    moment = moment.replace(second=0, microsecond=0)
    was_open = is_open(minutes_, zone, moment)
    for _ in range(3 * 24 * 60):
        moment += timedelta(minutes=1)
        now_open = is_open(minutes_, zone, moment)
        if now_open and not was_open:
            return moment
        was_open = now_open
    return None


@settings(max_examples=150)
@given(minutes, st.sampled_from(ZONES), moments | near_changes)
def test_the_next_opening_is_the_first_minute_that_finds_it_open_after_a_closed_one(
    minutes_: Minutes, zone: str, moment: datetime
):
    assert next_opening(minutes_, zone, moment) == minute_by_minute(minutes_, zone, moment)


def test_at_the_ends_of_the_calendar_a_window_is_closed():
    assert not is_open((0, 1440), BERLIN, datetime(9999, 12, 31, 23, 59, tzinfo=UTC))
    assert not is_open((0, 1440), "America/New_York", datetime(1, 1, 1, tzinfo=UTC))


def test_a_window_is_shown_as_it_is_written():
    assert show_window((540, 1440)) == "09:00-24:00"
