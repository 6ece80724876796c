from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.given import facts, given, gm, ticked
from support.sedna import condition
from support.stores import stored

from lc_events.controller.world import World
from lc_events.doctor.clock import Watch, check_clock, check_zone
from lc_events.doctor.finding import Level
from lc_events.doctor.retained import Retained
from lc_events.doctor.store import opened
from lc_events.mqtt.topics import Topics


def at(seconds: float) -> str:
    """A moment so many seconds from now, as events carry it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def found(path: Path, *commands, retained=None, began=None):
    journal = opened(stored(path / "events.db", given(*commands).events))
    seen = None if retained is None else Retained(Topics(), retained)
    try:
        return [*check_clock(began or Watch.now(), seen, journal.rows)]
    finally:
        journal.close()


def told(seconds: float, written: float, number: int = 0):
    """A message of GM's, received and written at these seconds from now."""
    news = [condition("Train", "Waiting", at(written + i)[:19] + "Z") for i in range(-number, 1)]
    return gm(*news, message_id=str(number), at=facts(at(seconds)))


def test_a_history_of_the_past_is_in_order(tmp_path):
    [finding] = found(tmp_path, told(-100, -100.5), ticked(at=facts(at(-10))))
    assert finding.level is Level.OK


def test_an_event_in_the_future_means_that_the_clock_went_back(tmp_path):
    finding, *_ = found(tmp_path, told(-100, -100), ticked(at=facts(at(3600))))
    assert finding.level is Level.WRONG
    assert re.search(r"version 2 is from a moment 3[56]\d\d s ahead", finding.says)


def test_a_clock_that_went_back_in_the_past_is_a_note(tmp_path):
    [finding] = found(tmp_path, told(-100, -100), ticked(at=facts(at(-500))), ticked(at=facts(at(-50))))
    assert (finding.level, "went back 1 times" in finding.says) == (Level.NOTE, True)
    assert "by 400 s at most" in finding.says


def test_a_message_that_came_before_it_was_written_means_that_this_clock_is_behind(tmp_path):
    [finding] = found(tmp_path, told(-100, -100), told(-90, -30, 1))
    assert finding.level is Level.WRONG
    assert re.search("at least (59|60) s behind the global manager's", finding.says)


def test_messages_that_all_come_late_may_mean_that_this_clock_is_ahead(tmp_path):
    [finding] = found(tmp_path, *(told(-100 + 20 * n, -600 + 20 * n, n) for n in range(4)))
    assert finding.level is Level.NOTE
    assert "this clock is ahead" in finding.says


@pytest.mark.parametrize("time", ["", "yesterday", None, "2026-01-01T00:00:00", "9999-99-99T00:00:00Z"])
def test_what_is_no_time_says_nothing(tmp_path, time):
    status = f'{{"state":"online","time":{"null" if time is None else repr(time)}}}'.replace("'", '"').encode()
    transition = gm(condition("Train", "Waiting", time), at=facts(at(-10)))
    [finding] = found(tmp_path, transition, retained={"sedna/state/edge2/status": status, "sedna/nonsense": b"x"})
    assert finding.level is Level.OK


def test_a_status_of_the_future_means_that_a_clock_is_wrong_here_or_there(tmp_path):
    status = f'{{"state":"online","time":"{at(60)}"}}'.encode()
    [finding] = found(tmp_path, told(-100, -100), retained={"sedna/state/edge2/status": status})
    assert "the status of node edge2 is from a moment" in finding.says


def test_a_clock_that_is_set_while_we_look_is_told(tmp_path):
    began = Watch.now()
    [finding] = found(tmp_path, told(-100, -100), began=Watch(began.wall - 30, began.monotonic))
    assert "was set by +30.0 s while we looked" in finding.says


WINDOW = {"timer": {"start": "02:00", "end": "04:00"}}


def zone_of(path: Path, zone: str, *, is_set: bool, recorded: str = "UTC", trigger=None):
    job = gm(condition("Train", "Waiting", "t"), trigger=trigger, at=facts(at(-9), zone=recorded))
    journal = opened(stored(path / "events.db", given(job).events))
    try:
        [finding] = check_zone(zone, World.load(journal), is_set=is_set)
    finally:
        journal.close()
    return finding


def test_the_zone_matters_where_a_job_has_a_window(tmp_path):
    assert zone_of(tmp_path / "1", "UTC", is_set=False).level is Level.OK
    finding = zone_of(tmp_path / "2", "UTC", is_set=False, trigger=WINDOW)
    assert finding.level is Level.NOTE
    assert "windows 02:00-04:00 are read in it" in finding.says
    assert zone_of(tmp_path / "3", "UTC", is_set=True, trigger=WINDOW).level is Level.OK


def test_a_zone_that_differs_from_the_one_decided_in_is_told(tmp_path):
    finding = zone_of(tmp_path, "Europe/Berlin", is_set=True, trigger=WINDOW)
    assert "were last decided in UTC" in finding.says
