from __future__ import annotations

from pathlib import Path

import pytest

from lc_events.errors import UsageError
from lc_events.settings.programs import GmSettings, LcSettings, WorkerSettings


def test_the_defaults_are_those_of_the_contract():
    settings = LcSettings.load(node="edge1")

    assert settings.mqtt.display_url == "mqtt://127.0.0.1:1883"
    assert settings.mqtt.client_id == "lc-edge1"
    assert (settings.mqtt_mode, settings.ticks, settings.topic_root) == ("external", "all", "sedna")
    assert (settings.log, settings.log_format) == ("info", "text")
    assert (settings.state_dir, settings.store) == (Path("lc-state"), Path("lc-state/events.db"))
    assert (settings.root, settings.tick_seconds, settings.dataset_seconds) == (Path("/"), None, 60)
    assert settings.max_message_bytes == 1_048_576


def test_each_program_has_a_session_of_its_own():
    assert GmSettings.load().mqtt.client_id == "gm"
    assert WorkerSettings.load(node="edge1").mqtt.client_id == "worker-edge1"


@pytest.mark.parametrize(
    ("store", "file"),
    [
        ("sqlite:///below/events.db", "below/events.db"),
        ("sqlite:////var/lib/events.db", "/var/lib/events.db"),
        ("other.db", "other.db"),
        ("/var/lib/other.db", "/var/lib/other.db"),
    ],
)
def test_a_store_is_a_url_or_a_path(store, file):
    assert LcSettings.load(store=store).store == Path(file)


def test_a_store_that_is_a_folder_is_the_data_base_in_it(tmp_path):
    assert LcSettings.load(store=f"sqlite:///{tmp_path}").store == tmp_path / "events.db"


def test_the_store_lies_in_the_state_folder():
    assert LcSettings.load(state_dir="elsewhere").store == Path("elsewhere/events.db")
    assert GmSettings.load(state_dir="elsewhere").store == Path("elsewhere/events.db")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("node", "gm", "not gm"),
        ("node", "a/b", "A-Z a-z 0-9"),
        ("node", "n" * 65, "1 to 64"),
        ("mqtt_url", "http://127.0.0.1", r"LC_MQTT_….*mqtt:// or mqtts://"),
        ("mqtt_url", "mqtt://127.0.0.1:70000", "port"),
        ("mqtt_password_file", "missing.txt", "LC_MQTT_PASSWORD_FILE: .*missing.txt: No such file"),
        ("mqtt_client_id", "a b", "A-Z a-z 0-9"),
        ("mqtt_mode", "both", "'external' or 'internal'"),
        ("store", "postgresql://host/db", "sqlite:///FILE"),
        ("store", "sqlite:///:memory:", "sqlite:///FILE"),
        ("tick_seconds", "0", "greater than 0"),
        ("tick_seconds", "inf", "finite"),
        ("tick_seconds", "nan", "must be"),
        ("ticks", "some", "'all' or 'decisive'"),
        ("dataset_seconds", "1 minute", "valid number"),
        ("timezone", "Europe", "IANA"),
        ("timezone", "../etc/passwd", "IANA"),
        ("max_message_bytes", "1e6", "valid integer"),
        ("max_message_bytes", "999999999", "less than or equal to 268435455"),
        ("topic_root", "$SYS", "topic root"),
        ("topic_root", "a/#", "topic root"),
        ("model_places", "http://host/models", "local folder such as /models"),
        ("model_places", "file:///models", "local folder such as /models"),
        ("model_places", "/models, models", "'models', but must be a local folder"),
        ("model_places", "/", "open every file"),
        ("model_places", "/./", "open every file"),
        ("model_places", "/models/../etc", "without '..'"),
        ("model_places", "s3://models/%2e%2e/x", "without '..'"),
        ("model_places", "s3://", "s3://BUCKET"),
        ("model_places", "s3:///prefix", "s3://BUCKET"),
        ("model_places", "s3://*", "s3://BUCKET"),
        ("model_places", "s3://models//a", "empty names"),
        ("log", "loud", "'debug', 'info'"),
        ("log_format", "xml", "'text' or 'json'"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(field, value, words):
    with pytest.raises(UsageError, match=words):
        LcSettings.load(**{field: value})


def test_a_state_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"^--state-dir is .*must be a folder$"):
        LcSettings.load(state_dir=tmp_path / "file")


def test_the_log_level_may_be_written_in_capitals(env):
    env(LC_LOG="DEBUG")
    assert LcSettings.load().log == "debug"


def test_executables_are_words_with_commas_between_or_a_list(env, config):
    assert WorkerSettings.load().agent.allow == ("python", "python3")
    assert WorkerSettings.load(config=config('allow = ["sh", "python"]')).agent.allow == ("sh", "python")
    env(WORKER_ALLOW="python, /usr/bin/env,")
    assert WorkerSettings.load().agent.allow == ("python", "/usr/bin/env")


def test_model_places_are_urls_with_commas_between_or_a_list(env, config):
    assert LcSettings.load().model_places == ()
    given = config('model_places = ["/models", "s3://models/released/"]')
    assert LcSettings.load(config=given).model_places == ("/models", "s3://models/released")
    env(LC_MODEL_PLACES="//srv/./models/, s3://models,")
    assert LcSettings.load(config=given).model_places == ("/srv/models", "s3://models")
    assert LcSettings.load(model_places="/other").model_places == ("/other",)


def test_an_empty_model_place_is_refused_in_a_list(config):
    with pytest.raises(UsageError, match=r"^model_places in .*settings.toml is '', but must be a local folder"):
        LcSettings.load(config=config('model_places = ["/models", ""]'))


@pytest.mark.parametrize("place", ["/srv", "/srv/lc-state", "/srv/lc-state/spool", "/link"])
def test_a_model_place_that_opens_the_state_folder_is_refused(tmp_path, place):
    (tmp_path / "srv/lc-state").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "srv")
    with pytest.raises(UsageError, match=f"^--model-places is '/models,{place}', but {place} opens the state folder"):
        LcSettings.load(root=tmp_path, state_dir=tmp_path / "srv/lc-state", model_places=f"/models,{place}")
    beside = LcSettings.load(root=tmp_path, state_dir=tmp_path / "srv/lc-state", model_places="/srv/lc,s3://srv")
    assert beside.model_places == ("/srv/lc", "s3://srv")


@pytest.mark.parametrize("named", ["srv", "link"])
@pytest.mark.parametrize("field", ["store", "mqtt_password_file", "mqtt_key_file", "mqtt_cert_file", "config"])
def test_a_model_place_that_opens_a_secret_or_the_history_elsewhere_is_refused(tmp_path, field, named):
    (tmp_path / "srv").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "srv")
    (tmp_path / "srv/secret").write_text("" if field == "config" else "secret")
    cert = {"mqtt_cert_file": tmp_path / "cert"} if field == "mqtt_key_file" else {}
    url = "mqtts://user@127.0.0.1" if field.startswith("mqtt_") else "mqtt://127.0.0.1"
    settings = {"root": tmp_path, "mqtt_url": url, field: tmp_path / named / "secret", **cert}
    for place in ("/srv", "/link"):
        with pytest.raises(UsageError, match=f"but {place} opens LC_{field.upper()} {tmp_path}/srv/secret$"):
            LcSettings.load(**settings, model_places=place)
    assert LcSettings.load(**settings, model_places="/srv/models,s3://srv").model_places == ("/srv/models", "s3://srv")


def test_a_certificate_may_lie_in_a_model_place_if_its_key_does_not(tmp_path):
    files = {"mqtt_cert_file": tmp_path / "models/cert.pem", "mqtt_key_file": tmp_path / "key.pem"}
    settings = LcSettings.load(root=tmp_path, mqtt_url="mqtts://127.0.0.1", model_places="/models", **files)
    assert settings.model_places == ("/models",)


def test_what_is_our_own_is_closed_to_every_job(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "password").write_text("secret")
    files = {"store": tmp_path / "link/db", "mqtt_password_file": tmp_path / "password", "state_dir": tmp_path / "s"}
    settings = LcSettings.load(mqtt_url="mqtt://user@127.0.0.1", **files)
    assert settings.closed == tuple(tmp_path / name for name in ("s", "db", "db-wal", "password"))


def test_the_agent_gets_what_the_worker_was_told(tmp_path):
    agent = WorkerSettings.load(
        node="edge1", state_dir="state", root="/mnt", programs=tmp_path, concurrency="3", grace_seconds="0.5"
    ).agent

    assert (agent.node, agent.root, agent.programs, agent.concurrency) == ("edge1", Path("/mnt"), tmp_path, 3)
    assert (agent.state_dir, agent.grace_seconds) == (Path("state").absolute(), 0.5)


@pytest.mark.parametrize("url", ["mqtt://user:hunter2@broker", "mqtt://user:hunter2@broker:99999"])
def test_a_password_is_never_shown(env, url):
    env(LC_MQTT_URL=url)
    try:
        shown = repr(LcSettings.load()) + repr(LcSettings.load().mqtt)
    except UsageError as error:
        shown = str(error)

    assert "hunter2" not in shown
    assert shown
