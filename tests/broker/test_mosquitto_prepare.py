from __future__ import annotations

import getpass
import os
import pwd
import re
import tempfile
from pathlib import Path

import pytest
from support.prepared import SCRIPTS, attempt, certificates, prepare

from lc_events.mqtt.settings import MqttSettings


@pytest.mark.parametrize("name", ["+", "#", "a/b", "a b", "a:b", "$x", "edge1\nuser device", "x" * 58, "gm", "ä"])
def test_nodes_with_names_that_are_none_are_refused(tmp_path, name):
    done = attempt("prepare", "cloud", str(tmp_path / "cloud"), "edge1", name)
    assert done.returncode == 2
    assert re.search("A-Z a-z 0-9|shorter|may not be called", done.stderr)
    assert not (tmp_path / "cloud").exists()


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ("device:+", "A-Z a-z"),
        ("device:lc-edge1", "looks like one of a node"),
        ("device:gm", "is the name of a role"),
        ("device:device", "are there without --account"),
        ("auditor", "are there without --account"),
        ("bridge:edge1", "is named twice"),
        ("root:me", "role root"),
        ("*", "A-Z a-z"),
    ],
)
def test_accounts_that_would_be_somebody_else_are_refused(tmp_path, account, words):
    done = attempt("prepare", "cloud", str(tmp_path / "cloud"), "edge1", "--account", account)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "cloud").exists()


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
        for line in (SCRIPTS / name).read_text().replace("[user]", "").splitlines():
            if not line.strip():
                explained = False
            explained = explained or line.startswith("#")
            assert explained or not line, f"{name}: {line}"


def test_no_placeholder_is_left(tmp_path):
    for name in ("ca.crt", "broker.crt", "broker.key", "bridge-edge1.crt", "bridge-edge1.key"):
        (tmp_path / name).touch()
    options = ("--certificates", str(tmp_path), "--cloud", "cloud.example")
    text = prepare("edge", tmp_path / "edge1", "edge1", options=options).config.read_text()
    text += prepare("cloud", tmp_path / "cloud", "edge1").config.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert not [line for line in lines if "@" in line or line.startswith("[")]
    assert lines.count("address cloud.example:8883") == 2


def test_folders_are_written_as_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    user = ("--broker-user", getpass.getuser())
    done = attempt("prepare", "cloud", "made/cloud", "--data", "made/data", *user, "edge1")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "made" / "cloud" / "mosquitto.conf").read_text()
    assert f"persistence_location {tmp_path}/made/data\n" in text
    assert f"password_file {tmp_path}/made/cloud/passwords\n" in text
    assert (tmp_path / "made" / "data").stat().st_mode & 0o777 == 0o700


def test_certificates_that_are_missing_are_named_before_anything_is_made(tmp_path):
    for name in ("ca.crt", "broker.crt", "broker.key"):
        (tmp_path / name).touch()
    user = ("--broker-user", getpass.getuser())
    options = ("--certificates", str(tmp_path), "--data", str(tmp_path / "data"), *user)
    done = attempt("prepare", "edge", str(tmp_path / "edge1"), *options, "edge1")
    assert done.returncode == 2
    assert f"{tmp_path}/bridge-edge1.crt is missing" in done.stderr
    assert not (tmp_path / "edge1").exists()
    assert not (tmp_path / "data").exists()


@pytest.fixture
def for_all():
    """A folder that everybody may enter, which those of tests are not."""
    with tempfile.TemporaryDirectory(prefix="prepare-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def other_user() -> str:
    if os.getuid() != 0:
        pytest.skip("only root can prepare for another user")
    return "nobody"


def test_a_broker_of_another_user_can_read_and_write_what_it_needs(for_all):
    user = other_user()
    empty = for_all / "empty"
    empty.mkdir()
    done = attempt("prepare", "cloud", str(for_all / "cloud"), "--data", str(empty), "--broker-user", user, "edge1")
    assert done.returncode == 0, done.stderr
    owner = pwd.getpwnam(user).pw_uid
    assert empty.stat().st_uid == owner
    for name in ("mosquitto.conf", "rights", "passwords", "health/mosquitto_sub"):
        assert (for_all / "cloud" / name).stat().st_uid == owner
    assert f"\nuser {user}\n" in (for_all / "cloud" / "mosquitto.conf").read_text()


def test_a_number_is_a_user_of_which_the_configuration_says_nothing(for_all):
    other_user()
    done = attempt("prepare", "cloud", str(for_all / "cloud"), "--broker-user", "1883", "--client-user", "10001")
    assert done.returncode == 0, done.stderr
    assert (for_all / "cloud" / "data").stat().st_uid == 1883
    assert (for_all / "cloud" / "users" / "gm").stat().st_uid == 10001
    assert not re.search("^user|\\[user", (for_all / "cloud" / "mosquitto.conf").read_text(), re.MULTILINE)


def test_root_prepares_for_the_user_as_which_mosquitto_goes_on(for_all):
    other_user()
    try:
        owner = pwd.getpwnam("mosquitto").pw_uid
    except KeyError:
        pytest.skip("there is no user mosquitto")
    certificates(for_all / "authority", for_all / "made" / "tls", "broker", "127.0.0.1")
    options = ("--certificates", str(for_all / "made" / "tls"), "--bind", "127.0.0.1")
    done = attempt("prepare", "cloud", str(for_all / "made" / "cloud"), *options)
    assert done.returncode == 0, done.stderr
    assert (for_all / "made" / "cloud" / "passwords").stat().st_uid == owner
    assert (for_all / "made" / "cloud" / "data").stat().st_uid == owner


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("data/mosquitto.db", 0o600, "may not write to"),
        ("tls/broker.key", 0o400, "may not read"),
        ("closed/cloud", 0o700, "may not enter"),
    ],
)
def test_what_the_brokers_user_may_not_do_is_said_before_anything_is_made(for_all, name, mode, words):
    user = other_user()
    for folder in ("data", "tls", "closed"):
        (for_all / folder).mkdir()
    for file in ("ca.crt", "broker.crt", "broker.key"):
        (for_all / "tls" / file).touch()
    if name == "closed/cloud":
        (for_all / "closed").chmod(mode)
    else:
        (for_all / name).touch(mode)
        (for_all / name).chmod(mode)
    folder = for_all / ("closed/cloud" if name.startswith("closed") else "cloud")
    options = ("--data", str(for_all / "data"), "--certificates", str(for_all / "tls"), "--broker-user", user)
    done = attempt("prepare", "cloud", str(folder), *options)
    assert done.returncode == 2
    assert f"user {user}, who the broker runs as, {words}" in done.stderr
    assert not folder.exists()
