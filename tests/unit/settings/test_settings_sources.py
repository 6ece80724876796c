from __future__ import annotations

import pytest

from lc_events.errors import UsageError
from lc_events.settings.programs import BrokerSettings, GmSettings, LcSettings, WorkerSettings, broker_settings


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(env, config):
    file = config('node = "file"\nroot = "/file"\nticks = "decisive"\n')
    env(LC_NODE="environment", LC_ROOT="/environment")

    settings = LcSettings.load(config=file, node="flag", root=None)

    assert (settings.node, str(settings.root), settings.ticks, settings.dataset_seconds) == (
        "flag",
        "/environment",
        "decisive",
        60,
    )


def test_the_file_may_be_named_by_a_variable(env, config):
    env(LC_CONFIG=str(config('node = "file"')))

    assert LcSettings.load().node == "file"


def test_sednas_names_are_read_when_ours_are_absent(env):
    env(NODENAME="sedna", ROOTFS_MOUNT_DIR="/rootfs", LC_NODE="")

    assert LcSettings.load().node == WorkerSettings.load().node == "sedna"
    assert str(LcSettings.load().root) == "/rootfs"


def test_ours_win_over_sednas_names_even_from_the_file(env, config):
    env(NODENAME="sedna", ROOTFS_MOUNT_DIR="/rootfs", LC_ROOT="/ours")

    settings = LcSettings.load(config=config('node = "file"'))

    assert (settings.node, str(settings.root)) == ("file", "/ours")


def test_an_empty_variable_is_an_absent_one(env):
    env(LC_TICK_SECONDS="", LC_TIMEZONE="")

    assert LcSettings.load().tick_seconds is None


def test_an_unknown_name_in_the_file_is_named(config):
    with pytest.raises(UsageError, match=r"settings\.toml: unknown settings colour, tick_second; known are .*node"):
        LcSettings.load(config=config('node = "a"\ntick_second = 1\ncolour = "red"'))


@pytest.mark.parametrize(
    ("text", "words"),
    [("node = ", "not TOML"), ("[node]\nname = 1", "node in .*settings.toml is .* must be a valid string")],
)
def test_a_file_that_makes_no_sense_is_said_with_its_name(config, text, words):
    with pytest.raises(UsageError, match=words):
        LcSettings.load(config=config(text))


def test_a_file_that_is_not_there_is_said_with_its_name(tmp_path):
    with pytest.raises(UsageError, match=r"missing\.toml: No such file"):
        LcSettings.load(config=tmp_path / "missing.toml")


def test_a_file_of_bytes_is_not_toml(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"bytes\.toml: not TOML"):
        GmSettings.load(config=tmp_path / "bytes.toml")


def test_every_wrong_value_is_told_with_where_it_stands(env, config):
    env(LC_TICK_SECONDS="soon", NODENAME="gm")
    file = config('timezone = "Mars/Olympus"')

    with pytest.raises(UsageError) as raised:
        LcSettings.load(config=file, max_message_bytes="0")

    assert {sentence.partition(", but must be ")[0] for sentence in str(raised.value).split("; ")} == {
        "NODENAME is 'gm'",
        "LC_TICK_SECONDS is 'soon'",
        f"timezone in {file} is 'Mars/Olympus'",
        "--max-message-bytes is '0'",
    }


def test_commands_that_talk_to_a_broker_take_all_from_the_lc_or_else_all_from_the_gm(env):
    assert broker_settings().mqtt.host == "127.0.0.1"
    env(GM_MQTT_URL="mqtt://user@cloud", GM_TOPIC_ROOT="plant")
    assert (broker_settings().mqtt.host, broker_settings().topic_root) == ("cloud", "plant")
    env(LC_MQTT_URL="mqtt://edge")
    assert (broker_settings().mqtt.display_url, broker_settings().topic_root) == ("mqtt://edge:1883", "sedna")


def test_commands_never_take_the_client_id_of_a_running_program(env):
    env(LC_MQTT_CLIENT_ID="lc-edge1", LC_MQTT_URL="mqtt://edge")

    assert broker_settings().mqtt.client_id is None
    assert LcSettings.load().mqtt.client_id == "lc-edge1"


def test_commands_read_the_file_of_the_lc_and_pass_over_what_is_not_for_them(config):
    file = config('node = "edge1"\ntick_seconds = 5\nmqtt_url = "mqtt://edge"\nmqtt_client_id = "lc-edge1"')

    assert BrokerSettings.load(config=file).mqtt.host == "edge"
    with pytest.raises(UsageError, match="unknown settings hue"):
        BrokerSettings.load(config=config("hue = 1"))


def test_commands_find_the_internal_broker_of_the_lc_by_what_it_wrote_down(env, tmp_path):
    env(LC_MQTT_MODE="internal", LC_STATE_DIR=str(tmp_path), GM_MQTT_URL="mqtt://cloud")
    with pytest.raises(UsageError, match=r"broker\.env: No such file or directory; the LC writes it"):
        broker_settings()
    (tmp_path / "broker.env").write_text("LC_MQTT_URL=mqtt://lc-events:hunter2@127.0.0.1:1885\nLC_MQTT_USER=x\n")

    assert broker_settings().mqtt.display_url == "mqtt://lc-events@127.0.0.1:1885"
    assert broker_settings().mqtt.password == "hunter2"
    assert "hunter2" not in repr(broker_settings())
