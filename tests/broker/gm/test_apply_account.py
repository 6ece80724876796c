"""`apply` and `delete` under an account that may not: they say which one it is, and which they need."""

from __future__ import annotations

import json

import pytest
from support.gm import job_manifest
from support.prepared import prepare

from lc_events.cli.main import main


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """The cloud's broker with the project's own accounts, one of them a controller's."""
    prepared = prepare("cloud", tmp_path_factory.mktemp("cloud"), options=("--account", "lc:edge1"))
    with prepared.broker():
        yield prepared


@pytest.fixture
def told(cloud, capsys, monkeypatch, tmp_path):
    """Run a command with these variables; what it says is wrong."""
    manifest = tmp_path / "job.yaml"
    manifest.write_text(json.dumps(job_manifest()))
    commands = {"apply": ("apply", "-f", str(manifest)), "delete": ("delete", "job", "job1")}

    def run(command, *flags, **variables):
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        with pytest.raises(SystemExit) as ended:
            main([*commands[command], "--timeout", "2", *flags])
        assert ended.value.code == 6
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize("command", ["apply", "delete"])
def test_the_account_of_a_controller_is_named_with_where_it_comes_from(told, cloud, command):
    operator, controller = cloud.url("operator"), cloud.url("lc-edge1")
    needed = "; apply and delete need an operator's account)\n"

    before = f"(as user lc-edge1, from LC_MQTT_URL, which goes before GM_MQTT_URL{needed}"
    said = told(command, LC_MQTT_URL=controller, GM_MQTT_URL=operator)
    assert said.endswith(before)
    assert "not authorized (0x87)" in said
    assert told(command, "--mqtt-url", controller).endswith(f"(as user lc-edge1, from --mqtt-url{needed}")


def test_a_wrong_password_is_of_an_account_too(told, cloud):
    url = f"mqtt://operator:wrong@127.0.0.1:{cloud.port}"
    assert "(as user operator, from GM_MQTT_URL; apply" in told("apply", GM_MQTT_URL=url)


def test_an_operators_account_that_gets_no_answer_is_not_doubted(told, cloud):
    assert "as user" not in told("apply", GM_MQTT_URL=cloud.url("operator"))
