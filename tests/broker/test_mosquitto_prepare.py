from __future__ import annotations

import re

import pytest
from support.prepared import SCRIPTS, attempt, prepare

from lc_events.mqtt.settings import MqttSettings


@pytest.mark.parametrize("name", ["+", "#", "a/b", "a b", "a:b", "$x", "edge1\nuser device", "x" * 58, "gm", "ä"])
def test_nodes_with_names_that_are_none_are_refused(tmp_path, name):
    done = attempt("prepare", "cloud", str(tmp_path / "cloud"), "edge1", name)
    assert done.returncode == 2
    assert re.search("A-Z a-z 0-9|shorter|may not be called", done.stderr)
    assert not (tmp_path / "cloud" / "rights").exists()


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ("device:+", "A-Z a-z"),
        ("device:lc-edge1", "looks like one of a node"),
        ("device:gm", "is the name of a role"),
        ("device:device", "is named twice"),
        ("bridge:edge1", "is named twice"),
        ("root:me", "role root"),
        ("*", "A-Z a-z"),
    ],
)
def test_accounts_that_would_be_somebody_else_are_refused(tmp_path, account, words):
    done = attempt("prepare", "cloud", str(tmp_path / "cloud"), "edge1", "--account", account)
    assert done.returncode == 2
    assert words in done.stderr


def test_an_edge_without_its_bridges_password_says_what_to_do(tmp_path):
    done = attempt("prepare", "edge", str(tmp_path / "edge"), "edge1")
    assert done.returncode == 2
    assert "users/bridge-edge1 is missing: copy it from the cloud's folder" in done.stderr


def test_secrets_are_kept_for_their_owner_and_from_one_run_to_the_next(tmp_path):
    first = prepare("cloud", tmp_path / "cloud", "edge1")
    password = first.password("bridge-edge1")
    again = prepare("cloud", tmp_path / "cloud", "edge1", "edge2", options=("--account", "device:camera7"))
    assert again.password("bridge-edge1") == password
    passwords = {user.name: user.read_text().strip() for user in (tmp_path / "cloud" / "users").iterdir()}
    assert {"gm", "operator", "device", "auditor", "health", "bridge-edge2", "camera7"} <= passwords.keys()
    assert len(set(passwords.values())) == len(passwords)
    assert all(re.fullmatch("[A-Za-z0-9]{32}", text) for user, text in passwords.items() if user != "tester")
    for name in ("mosquitto.conf", "rights", "passwords", "users/gm", "health/mosquitto_sub"):
        assert (tmp_path / "cloud" / name).stat().st_mode & 0o077 == 0
    assert not [text for text in passwords.values() if text in (tmp_path / "cloud" / "passwords").read_text()]


def test_a_secret_is_a_password_file_of_our_programs(tmp_path):
    prepared = prepare("cloud", tmp_path / "cloud", "edge1")
    settings = MqttSettings.from_url("mqtt://gm@127.0.0.1", password_file=tmp_path / "cloud" / "users" / "gm")
    assert settings.password == prepared.password("gm")


def test_every_setting_has_a_reason_above_it():
    for name in ("cloud.conf", "edge.conf", "common.conf", "tls.conf"):
        explained = False
        for line in (SCRIPTS / name).read_text().splitlines():
            if not line.strip():
                explained = False
            explained = explained or line.startswith("#")
            assert explained or not line, f"{name}: {line}"


def test_no_placeholder_is_left(tmp_path):
    options = ("--certificates", str(tmp_path), "--cloud", "cloud.example")
    text = prepare("edge", tmp_path / "edge1", "edge1", options=options).config.read_text()
    text += prepare("cloud", tmp_path / "cloud", "edge1").config.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert not [line for line in lines if "@" in line or line.startswith("[")]
    assert lines.count("address cloud.example:8883") == 2
