from __future__ import annotations

import os

import pytest

from lc_events.doctor.subject import read_subject


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith(("LC_", "GM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_a_model_place_that_opens_a_secret_is_told_once_and_all_other_settings_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("LC_MODEL_PLACES", str(tmp_path))
    monkeypatch.setenv("LC_NODE", "edge7")

    subject = read_subject({})

    assert subject.faults == (
        f"LC_MODEL_PLACES is '{tmp_path}', but {tmp_path} opens the state folder {tmp_path}/state",
    )
    assert (subject.settings.state_dir, subject.settings.model_places) == (tmp_path / "state", ())
    assert subject.node == "edge7"


def test_a_password_file_that_is_not_there_is_named_by_its_own_setting(monkeypatch):
    monkeypatch.setenv("LC_MQTT_PASSWORD_FILE", "/nonexistent")

    subject = read_subject({})

    words = "LC_MQTT_PASSWORD_FILE: MQTT password file /nonexistent: No such file or directory"
    assert (subject.faults, subject.mqtt) == ((words,), words)
