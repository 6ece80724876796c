from __future__ import annotations

from pathlib import Path

import pytest

from lc_events.errors import UsageError
from lc_events.settings.files import reading_store


def test_the_flag_wins_over_all(config):
    assert reading_store(
        "sqlite:////flag/events.db",
        config('store = "/file.db"'),
        {"LC_STORE": "/environment.db", "LC_STATE_DIR": "/lc", "GM_STATE_DIR": "/gm"},
    ) == Path("/flag/events.db")


@pytest.mark.parametrize(
    ("environ", "file"),
    [
        ({"LC_STORE": "sqlite:////x/y.db", "LC_STATE_DIR": "/lc", "GM_STATE_DIR": "/gm"}, "/x/y.db"),
        ({"LC_STATE_DIR": "/lc", "GM_STATE_DIR": "/gm"}, "/lc/events.db"),
        ({"GM_STATE_DIR": "/gm"}, "/gm/events.db"),
        ({"LC_STORE": "", "LC_STATE_DIR": ""}, "lc-state/events.db"),
    ],
)
def test_else_the_settings_of_the_lc_else_those_of_the_gm(environ, file):
    assert reading_store(environ=environ) == Path(file)


def test_the_config_file_is_read_for_where_the_store_is_and_for_nothing_else(config):
    file = config('state_dir = "/from/file"\ntick_seconds = "wrong"\n')

    assert reading_store(None, file, {}) == Path("/from/file/events.db")
    assert reading_store(None, file, {"LC_STATE_DIR": "/lc"}) == Path("/lc/events.db")


def test_without_any_setting_the_folder_of_a_gm_is_taken_if_it_is_alone_here(tmp_path):
    (tmp_path / "gm-state").mkdir()
    assert reading_store(environ={}) == Path("gm-state/events.db")
    (tmp_path / "lc-state").mkdir()
    assert reading_store(environ={}) == Path("lc-state/events.db")


def test_a_folder_is_the_data_base_in_it(tmp_path):
    assert reading_store(str(tmp_path)) == tmp_path / "events.db"


def test_another_data_base_is_refused():
    with pytest.raises(UsageError, match=r"postgresql.*must be sqlite"):
        reading_store("postgresql://host/db")
