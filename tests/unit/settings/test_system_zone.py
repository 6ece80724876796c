from __future__ import annotations

import pytest

from lc_events.settings.timezone import is_zone, system_zone


@pytest.mark.parametrize("tz", ["Europe/Berlin", ":Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin"])
def test_the_variable_comes_first(tmp_path, tz):
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert system_zone({"TZ": tz}, tmp_path) == "Europe/Berlin"


@pytest.mark.parametrize("tz", ["", "CET-1CEST,M3.5.0,M10.5.0/3", "Mars/Olympus"])
def test_a_variable_that_names_no_zone_is_passed_over(tmp_path, tz):
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert system_zone({"TZ": tz}, tmp_path) == "Asia/Tokyo"


def test_the_link_is_followed_when_there_is_no_file(tmp_path):
    zoneinfo = tmp_path / "zoneinfo"
    (zoneinfo / "America").mkdir(parents=True)
    (zoneinfo / "America" / "Lima").touch()
    (tmp_path / "localtime").symlink_to(zoneinfo / "America" / "Lima")
    assert system_zone({}, tmp_path) == "America/Lima"


def test_a_machine_that_says_nothing_is_in_utc(tmp_path):
    assert system_zone({}, tmp_path) == "UTC"


@pytest.mark.parametrize("name", ["", "Europe", "../UTC", "/etc/localtime", "a\0b", "x" * 400])
def test_what_is_no_zone_is_not_one(name):
    assert not is_zone(name)
