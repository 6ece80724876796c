from __future__ import annotations

import base64
import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.controller import quarantine as module
from lc_events.controller.quarantine import Quarantine
from lc_events.controller.refused_text import shown
from lc_events.errors import NotFoundError

SECRET = "AKIAplantedSecret0"


def put(quarantine: Quarantine, number: int, topic: str = "sedna/down/x/ack", payload: bytes = b"{") -> str:
    time = f"2026-01-01T00:00:{number // 1000:02}.{number % 1000:06}Z"
    return quarantine.put(time=time, topic=topic, code="malformed", error="not JSON", payload=payload)


@pytest.fixture
def quarantine(tmp_path) -> Quarantine:
    return Quarantine(tmp_path / "quarantine")


def test_what_is_put_is_kept_as_it_came_for_the_owner_alone(quarantine, tmp_path):
    entry = put(quarantine, 1, payload=b"\x00\xff no JSON")
    found = Quarantine(tmp_path / "quarantine").get(entry)
    assert (found.payload, found.is_whole, found.code) == (b"\x00\xff no JSON", True, "malformed")
    path = tmp_path / "quarantine" / f"{entry}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_oldest_of_a_topic_go_first_and_are_counted(quarantine, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PER_TOPIC", 3)
    other = put(quarantine, 0, topic="sedna/tick/x")
    entries = [put(quarantine, number) for number in range(1, 6)]
    assert [entry.id for entry in quarantine.entries()] == [other, *entries[2:]]
    assert Quarantine(tmp_path / "quarantine").dropped() == 2


def test_the_oldest_of_all_make_room_for_number_and_bytes(quarantine, monkeypatch):
    monkeypatch.setattr(module, "_IN_ALL", 4)
    entries = [put(quarantine, number, topic=f"sedna/tick/n{number}") for number in range(6)]
    assert [entry.id for entry in quarantine.entries()] == entries[2:]
    monkeypatch.setattr(module, "_BYTES", 5000)
    put(quarantine, 7, payload=b"x" * 3000)
    newest = put(quarantine, 8, payload=b"x" * 3000)
    assert [entry.id for entry in quarantine.entries()] == [newest]


def test_of_a_message_that_would_fill_it_alone_the_beginning_is_kept(quarantine, monkeypatch):
    monkeypatch.setattr(module, "_LARGEST", 1000)
    entry = quarantine.get(put(quarantine, 1, payload=b"y" * 2000))
    assert (entry.payload, entry.size, entry.is_whole) == (b"y" * 1000, 2000, False)


def test_entries_that_went_meanwhile_are_no_trouble(quarantine, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PER_TOPIC", 2)
    first = put(quarantine, 1)
    (tmp_path / "quarantine" / f"{first}.json").unlink()
    entries = [put(quarantine, number) for number in range(2, 5)]
    assert [entry.id for entry in quarantine.entries()] == entries[1:]
    assert quarantine.dropped() == 1


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "nothing", "*", "a/b"])
def test_an_id_that_is_none_is_not_found(quarantine, name):
    put(quarantine, 1)
    with pytest.raises(NotFoundError):
        quarantine.get(name)
    with pytest.raises(NotFoundError):
        quarantine.drop(name)


RESOURCE = {
    "metadata": {"annotations": {"sedna.io/credential": SECRET}},
    "spec": {"template": {"containers": [{"env": [{"name": "S3_SECRET_KEY", "value": SECRET}]}]}},
}


@pytest.mark.parametrize(
    "payload",
    [
        json.dumps({"header": {}, "content": RESOURCE}),
        json.dumps({"header": {}, "content": RESOURCE})[:-3],
        json.dumps({"header": {}, "content": base64.b64encode(json.dumps(RESOURCE).encode()).decode()}),
        json.dumps({"header": {}, "content": base64.b64encode(json.dumps(RESOURCE).encode()).decode()})[:-3],
        json.dumps({"content": {"password": SECRET, "list": [{"apiKey": SECRET}]}}),
        f"password={SECRET}",
        f"token: '{SECRET}'; other",
        f'{{"name":"MY_TOKEN","value":"{SECRET}"',
    ],
)
def test_what_is_shown_holds_no_secret(payload):
    text = json.dumps(shown(payload.encode()))
    assert SECRET not in text
    assert base64.b64encode(SECRET.encode()).decode()[4:20] not in text


@given(st.binary(max_size=300))
def test_any_bytes_can_be_shown(payload):
    assert json.loads(json.dumps(shown(payload))) == shown(payload)


def test_what_is_no_secret_is_shown():
    assert shown(b'{"id":"m-1","content":{"kind":"Dataset"}}') == {"id": "m-1", "content": {"kind": "Dataset"}}
    assert shown(b"no JSON at all") == "no JSON at all"
