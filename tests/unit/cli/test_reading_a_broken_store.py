"""What each command says of a store in which one event of one job is not what it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.given import STREAM
from support.rounds import two_rounds
from support.stores import stored
from support.tampering import Tampered

EVENTS = two_rounds().history().events
OTHER = "default/lifelonglearningjob/job2"
TIME = '"time":"2024-01-01T00:10:00.000000Z"'
NOT_JSON = b'{"time"; "2024-01-01T00:10:00.000000Z"}'

BROKEN = {
    "no JSON": ("Ticked", NOT_JSON),
    "no object": ("Ticked", b"[]"),
    "no such event": ("Tocked", f"{{{TIME}}}".encode()),
    "an event of datasets": ("DatasetDeleted", f"{{{TIME}}}".encode()),
    "fields of other types": ("SamplesArrived", f'{{{TIME},"epoch":1,"rows":"x","bytes":3}}'.encode()),
    "a time that is none": ("Ticked", b'{"time":"yesterday","cause":"timer"}'),
    "a time that is a number": ("Ticked", b'{"time":5,"cause":"timer"}'),
}

COMMANDS = [
    ("jobs",),
    ("jobs", "-o", "json"),
    ("show", "job1"),
    ("at", "job1", "--version", 20),
    ("at", "job1", "--time", "now"),
    ("history", "job1"),
    ("history", "job1", "-o", "json"),
    ("history", "job1", "--since", "2020-01-01"),
    ("diff", "job1", "--from", 1, "--to", 20),
    ("why", "job1"),
    ("why", "job1", "--time", "2024-01-01T00:08:00Z"),
    ("what-if", "job1", "--threshold", 1),
    ("verify",),
    ("verify", "job1", "-o", "json"),
    ("export", "-o", "-"),
    ("export", "job1", "-o", "-"),
    ("provenance", "job1", "--round", 1),
    ("provenance", "job1", "--round", 1, "--check"),
    ("report", "job1", "--output", "/dev/null"),
]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A state folder with two jobs; `break_at` changes an event of the first one."""
    monkeypatch.setenv("LC_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("LC_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("LC_TIMEZONE", "UTC")
    other = [replace(event, originator_id=OTHER) for event in EVENTS]
    return stored(tmp_path / "events.db", EVENTS, other)


def break_event(store, name, state, version=9):
    with Tampered(store) as tampered:
        change = "UPDATE stored_events SET topic = ?, state = ? WHERE originator_id = ? AND originator_version = ?"
        tampered.run(change, name, state, STREAM, version)


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(str, command)))
def test_no_command_ends_with_a_traceback(store, lc_events, command, how):
    break_event(store, *BROKEN[how])

    result = lc_events(*command)
    assert result.code in (0, 3, 5)
    assert all(line.startswith("lc-events: ") for line in result.err.splitlines())
    assert result.err or result.code == 0
    assert result.code == 5 or command[0] != "verify"


def test_jobs_lists_the_others_and_where_one_is_broken(store, lc_events):
    break_event(store, "Ticked", NOT_JSON)

    result = lc_events("jobs")
    _, broken, sound = result.out.splitlines()
    assert broken.split()[:3] == ["default/job1", "edge1", "broken"]
    assert "version 9: 'Ticked' cannot be read" in broken
    assert sound.split()[:3] == ["default/job2", "edge1", "Train/Waiting"]
    assert result.code == 5
    assert result.err.startswith(f"lc-events: {STREAM} version 9: 'Ticked' cannot be read: ")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_jobs_as_json_are_the_states_that_can_be_read(store, lc_events, form):
    sound = json.loads(lc_events("show", "job2", "-o", "json").out)
    break_event(store, *BROKEN["an event of datasets"])

    result = lc_events("jobs", "-o", form)
    assert json.loads(result.out) == ([sound] if form == "json" else sound)
    assert result.code == 5
    assert result.err.startswith(f"lc-events: {STREAM} version 9: it does not fit the history before it")


def test_a_job_whose_neighbour_is_broken_is_read_as_ever(store, lc_events):
    commands = [("show", "job2"), ("why", "job2", "--time", "2024-01-01T00:40:00Z"), ("history", "job2")]
    before = [lc_events(*command) for command in commands]
    break_event(store, "Ticked", NOT_JSON)

    assert [lc_events(*command) for command in commands] == before
    assert [result.code for result in before] == [0, 0, 0]


def test_a_report_of_a_broken_export_is_5(store, lc_events, tmp_path):
    break_event(store, *BROKEN["an event of datasets"])
    assert lc_events("export", "job1", "--output", tmp_path / "export.jsonl").code == 0

    result = lc_events("report", "job1", "--file", tmp_path / "export.jsonl", "--output", tmp_path / "report.html")
    assert result.code == 5
    assert result.err.startswith(f"lc-events: {STREAM} version 9: ")
