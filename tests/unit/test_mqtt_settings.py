from __future__ import annotations

import ssl
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.certificates import self_signed

from lc_events.errors import UsageError
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.tls import tls_context


def test_a_bare_url_has_the_default_port():
    assert MqttSettings.from_url("mqtt://127.0.0.1") == MqttSettings("127.0.0.1", 1883)
    assert MqttSettings.from_url("mqtts://broker.example/") == MqttSettings("broker.example", 8883, tls=True)


def test_user_password_and_ipv6_are_read_from_the_url():
    settings = MqttSettings.from_url("mqtt://lc-1:p%40ss%2Fw@[::1]:2883", client_id="lc-edge1")
    assert (settings.host, settings.port, settings.username, settings.password) == ("::1", 2883, "lc-1", "p@ss/w")
    assert settings.client_id == "lc-edge1"
    assert settings.display_url == "mqtt://lc-1@[::1]:2883"


@given(st.text(st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]), min_size=6))
def test_a_password_is_read_back_and_never_shown(password):
    settings = MqttSettings.from_url(f"mqtt://lc:{quote(password, safe='')}@h")
    assert settings.password == password
    assert settings == MqttSettings("h", username="lc", password=password)
    assert "password" not in repr(settings)
    assert settings.display_url == "mqtt://lc@h:1883"


def test_a_password_file_is_read_without_its_last_line_end(tmp_path):
    file = tmp_path / "password"
    file.write_text("pass word \n")
    settings = MqttSettings.from_url("mqtt://lc@h", password_file=file)
    assert settings.password == "pass word "
    assert "pass word" not in repr(settings)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "must begin with mqtt://"),
        ("127.0.0.1:1883", "must begin with mqtt://"),
        ("http://h", "must begin with mqtt://"),
        ("mqtt:h", "must begin with mqtt://"),
        ("mqtt://", "names no host"),
        ("mqtt://h ost", "names no host"),
        ("mqtt://h:99999", "cannot be read"),
        ("mqtt://h:abc", "cannot be read"),
        ("mqtt://[::1", "cannot be read"),
        ("mqtt://h:0", "port 0"),
        ("mqtt://h/topic", "nothing may follow"),
        ("mqtt://h?x=1", "nothing may follow"),
        ("mqtt://lc+1@h", "user name"),
        ("mqtt://a%2Fb@h", "user name"),
        ("mqtt://:secret@h", "password without a user"),
    ],
)
def test_a_wrong_url_is_a_usage_error_in_words(url, words):
    with pytest.raises(UsageError, match=words):
        MqttSettings.from_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "mqtt://lc:topsecret@h:port",
        "mqtt://lc:topsecret@h/x",
        "http://lc:topsecret@h",
        "lc:topsecret@h",
        "mqtt://lc:top#secret@h",
        "mqtt://lc:top/topsecret@h",
        "mqtt://lc:topsecret@[::1",
        "mqtt://l+c:topsecret@h",
    ],
)
def test_an_error_never_shows_the_password(url):
    with pytest.raises(UsageError) as error:
        MqttSettings.from_url(url)
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("client_id", ["", "a/b", "#", "x" * 129, "a\n"])
def test_a_client_id_with_wildcards_is_refused(client_id):
    with pytest.raises(UsageError, match="client id"):
        MqttSettings(client_id=client_id)


def test_a_password_in_two_places_is_a_usage_error(tmp_path):
    (tmp_path / "p").write_text("b")
    with pytest.raises(UsageError, match="both"):
        MqttSettings.from_url("mqtt://lc:a@h", password_file=tmp_path / "p")


def test_a_password_file_that_is_missing_or_empty_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        MqttSettings.from_url("mqtt://lc@h", password_file=tmp_path / "none")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(UsageError, match="empty"):
        MqttSettings.from_url("mqtt://lc@h", password_file=tmp_path / "empty")


def test_tls_files_with_a_plain_url_are_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="mqtts://"):
        MqttSettings.from_url("mqtt://h", ca_file=tmp_path / "ca.crt")
    with pytest.raises(UsageError, match="without a certificate"):
        MqttSettings.from_url("mqtts://h", key_file=tmp_path / "key.pem")


def test_a_tls_file_that_cannot_be_used_is_named(tmp_path):
    missing = MqttSettings.from_url("mqtts://h", ca_file=tmp_path / "ca.crt")
    with pytest.raises(UsageError, match=r"CA file .*ca\.crt: No such file"):
        tls_context(missing)
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(UsageError, match="no PEM certificate"):
        tls_context(missing)
    (tmp_path / "client.crt").write_text("no certificate")
    with pytest.raises(UsageError, match=r"client\.crt"):
        tls_context(MqttSettings.from_url("mqtts://h", cert_file=tmp_path / "client.crt"))


def test_a_key_of_another_certificate_is_a_usage_error(tmp_path):
    for name in ("one", "two"):
        self_signed(tmp_path, name)
    right = MqttSettings("h", tls=True, cert_file=tmp_path / "one.crt", key_file=tmp_path / "one.key")
    assert isinstance(tls_context(right), ssl.SSLContext)
    wrong = MqttSettings("h", tls=True, cert_file=tmp_path / "one.crt", key_file=tmp_path / "two.key")
    with pytest.raises(UsageError, match="do not belong together"):
        tls_context(wrong)
