from __future__ import annotations

import json

import pytest
from support.histories import FOLDER
from support.tampering import Tampered

JOB = "default/lifelonglearningjob/digits"


@pytest.fixture
def store(tmp_path, monkeypatch, lc_events):
    """The state folder of the global manager of a demo."""
    folder = tmp_path / "gm"
    assert lc_events("import", FOLDER / "digits-gm.jsonl", "--store", folder / "events.db").code == 0
    monkeypatch.setenv("GM_STATE_DIR", str(folder))
    monkeypatch.setenv("LC_TIMEZONE", "UTC")
    return folder


def test_its_jobs_are_listed(store, lc_events):
    titles, line = lc_events("jobs").out.splitlines()

    assert titles.split()[-2:] == ["WAITS", "FOR"]
    assert line.split()[:4] == ["default/digits", "edge1", "Train/Waiting", "2"]


def test_a_job_is_shown_with_its_conditions(store, lc_events):
    shown = json.loads(lc_events("show", "digits", "-o", "json").out)

    assert shown["conditions"][-1]["stage"] == "Train"
    assert shown["conditions"][-1]["type"] == "Waiting"
    assert json.loads(lc_events("jobs", "-o", "json").out) == [shown]
    first = json.loads(lc_events("at", "digits", "--version", 3, "-o", "json").out)
    assert [c["type"] for c in first["conditions"]] == ["Waiting"]


def test_a_job_that_cannot_be_read_is_broken(store, lc_events):
    with Tampered(store / "events.db") as tampered:
        tampered.run("UPDATE stored_events SET state = ? WHERE originator_id = ? AND originator_version = 3", b"", JOB)

    result = lc_events("jobs")
    assert (result.code, result.err.startswith(f"lc-events: {JOB} version 3: ")) == (5, True)
    assert result.out.splitlines()[1].split()[:3] == ["default/digits", "-", "broken"]
    assert lc_events("jobs", "-o", "json").out == "[]\n"


def test_its_history_is_that_of_the_node_gm(store, lc_events):
    events = json.loads(lc_events("history", "digits", "-o", "json", "--type", "ConditionAppended").out)

    assert {event["source"] for event in events} == {"/sedna/gm"}
    assert lc_events("history", "digits").out.splitlines()[2].split(maxsplit=3)[3].startswith("ConditionAppended")
    assert lc_events("history", "digits", "--type", "Ticked").code == 2


def test_it_can_be_verified_but_its_decisions_are_not_taken_again(store, lc_events):
    result = lc_events("verify", "digits", "-o", "json")

    assert result.code == 0
    assert json.loads(result.out)["notes"] == ["decisions of a global manager are not derived again"]


ONLY_OF_A_LOCAL_CONTROLLER = [
    ("why",),
    ("what-if", "--threshold", 1),
    ("provenance", "--round", 1),
    ("report", "--output", "/dev/null"),
]


@pytest.mark.parametrize("args", ONLY_OF_A_LOCAL_CONTROLLER)
@pytest.mark.parametrize("stream", ["digits", "default/dataset/digits"])
def test_what_only_a_local_controller_knows_is_2(store, lc_events, stream, args):
    command, *rest = args
    result = lc_events(command, stream, *rest)

    assert result.code == 2
    assert f"{command} is of a job in a local controller's store" in result.err


def test_an_export_of_its_store_is_no_report_either(lc_events):
    result = lc_events("report", "digits", "--file", FOLDER / "digits-gm.jsonl", "--output", "/dev/null")

    assert result.code == 2
    assert "report is of a job in a local controller's store" in result.err


def test_a_history_of_a_global_manager_is_not_taken_into_the_store_of_a_controller(tmp_path, lc_events):
    folder = tmp_path / "lc"
    assert lc_events("import", FOLDER / "lives.jsonl", "--store", folder / "events.db").code == 0

    result = lc_events("import", FOLDER / "digits-gm.jsonl", "--store", folder)
    assert result.code == 4
    assert "is the store of node edge1" in result.err
