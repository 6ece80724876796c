from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise

import pytest
from support.given import STREAM, deleted, failed
from support.histories import FOLDER
from support.rounds import Rounds, two_rounds
from support.stores import stored
from support.tampering import Tampered

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.journal import open_journal

HOSTILE = "\x1b[2J\x9b31m\u202e<script>\x07\r\n"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The state folder of a local controller with two rounds of job1; times are shown in UTC."""
    monkeypatch.setenv("LC_TIMEZONE", "UTC")
    monkeypatch.setenv("LC_STATE_DIR", str(tmp_path))
    stored(tmp_path / "events.db", two_rounds().history().events)
    return tmp_path


@pytest.fixture
def read(lc_events):
    """Run a reading command that succeeds; its JSON."""

    def run(*args):
        result = lc_events(*args, "-o", "json")
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return run


def view_of(folder, version=None):
    archive = Archive(open_journal(folder / "events.db", CONTROLLER.registry), CONTROLLER, "edge1")
    return json.loads(json.dumps(archive.view(archive.state(STREAM, version))))


def test_jobs_lists_each_job_on_a_line(store, lc_events, read):
    titles, line = lc_events("jobs").out.splitlines()

    assert titles.split() == ["JOB", "NODE", "STAGE", "ROUND", "VERSION", "UPDATED", "VERDICT"]
    assert line.split()[:5] == ["default/job1", "edge1", "Train/Waiting", "2", str(view_of(store)["version"])]
    assert line.endswith("num_of_samples 2 is not > 3")
    assert read("jobs") == [view_of(store)]
    assert json.loads(lc_events("jobs", "-o", "jsonl").out) == view_of(store)


def test_jobs_names_a_deployment_that_was_given_up(tmp_path, lc_events):
    rounds = Rounds().arrive(9).evaluated()
    rounds.wait().then(failed("outside", "the reason", final=True, now=rounds.time))
    stored(tmp_path / "events.db", rounds.told("Deploy/Failed", "Train/Waiting").history().events)

    line = lc_events("jobs", "--store", tmp_path).out.splitlines()[1]
    assert line.endswith("no train sample is pending; Deploy of round 1 was given up")


def test_jobs_of_an_empty_store_is_an_empty_list(tmp_path, read):
    stored(tmp_path / "events.db")

    assert read("jobs", "--store", tmp_path) == []


def test_show_is_the_job_state_of_the_contract(store, lc_events, read):
    assert read("show", "job1") == view_of(store)
    assert read("show", "default/job1") == view_of(store)
    assert "  train_pending  2" in lc_events("show", "job1").out.splitlines()


@pytest.mark.parametrize("job", ["other/job1", "job2"])
def test_a_job_that_is_not_there_is_3(store, lc_events, job):
    result = lc_events("show", job)

    assert (result.code, result.out) == (3, "")
    assert "lc-events jobs" in result.err


@pytest.mark.parametrize("job", ["a/b/c", "UPPER", "default/", "../x", "a b"])
def test_what_names_no_job_is_2(store, lc_events, job):
    assert lc_events("show", job).code == 2


def test_a_store_that_is_not_there_is_6(tmp_path, lc_events):
    result = lc_events("jobs", "--store", tmp_path / "none.db")

    assert result.code == 6
    assert "there is no event store at" in result.err


@pytest.mark.parametrize("content", [b"", b"not a data base at all, but long enough to look like one" * 100])
def test_a_file_that_is_no_store_is_6(tmp_path, lc_events, content):
    (tmp_path / "events.db").write_bytes(content)
    result = lc_events("jobs", "--store", tmp_path / "events.db")

    assert result.code == 6
    assert "cannot be read" in result.err
    assert ("; restore a copy, or move it away to start anew" in result.err) == bool(content)


@pytest.mark.parametrize(
    "command", [("jobs",), ("show", "job1"), ("history", "job1"), ("export", "-o", "-"), ("verify",)]
)
def test_a_damaged_store_is_6_with_what_to_do_about_it(store, lc_events, command):
    path = store / "events.db"
    damage(path)

    words = "database disk image is malformed; restore a copy, or move it away to start anew"
    assert lc_events(*command) == (6, "", f"lc-events: the event store {path} is damaged: {words}\n")


def damage(path):
    """Overwrite pages of a store, but not the first."""
    content = bytearray(path.read_bytes())
    content[8192:20480] = bytes(12288)
    path.write_bytes(content)


def test_the_controller_says_the_same_of_a_damaged_store(store, python):
    damage(store / "events.db")
    result = python("from lc_events.cli.main import main; main(['run', '--node', 'edge1'])")

    assert result.code == 6
    assert "is damaged: " in result.err
    assert result.err.endswith("; restore a copy, or move it away to start anew\n")
    assert "Traceback" not in result.err


def test_at_a_version_is_the_state_then(store, lc_events, read):
    for version in (1, 5, 9):
        assert read("at", "job1", "--version", version) == view_of(store, version)
    assert lc_events("at", "job1", "--version", 999).code == 3


def test_at_a_time_is_the_highest_version_that_is_not_after_it(store, lc_events, read):
    events = read("history", "job1")
    time = events[6]["time"]

    assert read("at", "job1", "--time", time)["version"] == 7
    assert lc_events("at", "job1", "--time", "2023-01-01").code == 3
    assert read("at", "job1", "--time", "now")["version"] == len(events)


def test_at_says_when_the_clock_went_back(tmp_path, lc_events):
    rounds = Rounds().ticked().ticked()
    rounds.now = datetime.fromisoformat("2023-12-31T23:00:00Z")
    stored(tmp_path / "events.db", rounds.ticked().history().events)

    result = lc_events("at", "job1", "--time", "2023-12-31T23:30:00Z", "-o", "json", "--store", tmp_path)

    assert json.loads(result.out)["version"] == 4
    assert result.err == (
        "lc-events: the clock went back: 3 versions, 1 to 3, before version 4 say a later time; "
        "what counts is the order of versions\n"
    )


@pytest.mark.parametrize("args", [(), ("--version", 1, "--time", "now"), ("--version", "0"), ("--time", "soon")])
def test_at_needs_one_point_in_time(store, lc_events, args):
    assert lc_events("at", "job1", *args).code == 2


def test_history_is_a_list_of_cloud_events(store, read):
    events = read("history", "job1")

    assert [event["sequence"] for event in events] == list(range(1, view_of(store)["version"] + 1))
    assert events[0]["prevhash"] == ""
    assert all(one["hash"] == other["prevhash"] for one, other in pairwise(events))
    assert events[5] == {
        "specversion": "1.0",
        "id": f"edge1/{STREAM}/6-{events[5]['hash'][:12]}",
        "source": "/sedna/edge1",
        "subject": STREAM,
        "type": "io.sedna.lc.TrainingTriggered.v1",
        "time": events[5]["data"]["time"],
        "datacontenttype": "application/json",
        "sequence": 6,
        "hash": events[5]["hash"],
        "prevhash": events[4]["hash"],
        "data": events[5]["data"],
    }


def test_history_as_lines_holds_the_same(store, lc_events, read):
    lines = lc_events("history", "job1", "-o", "jsonl").out.splitlines()

    assert [json.loads(line) for line in lines] == read("history", "job1")


def test_history_can_be_narrowed(store, read):
    whole = read("history", "job1")

    assert read("history", "job1", "--from", 4, "--to", 6) == whole[3:6]
    since, until = whole[3]["time"], whole[7]["time"]
    wanted = [event for event in whole if since <= event["time"] <= until]
    assert read("history", "job1", "--since", since, "--until", until) == wanted
    types = read("history", "job1", "--type", "Ticked", "--type", "TrainingTriggered")
    assert types == [e for e in whole if e["type"].split(".")[3] in ("Ticked", "TrainingTriggered")]


@pytest.mark.parametrize(("form", "nothing"), [("table", ""), ("json", "[]\n"), ("jsonl", "")])
def test_a_history_from_behind_its_end_says_where_that_is(store, lc_events, form, nothing):
    newest = view_of(store)["version"]
    words = f"lc-events: default/job1 ends at version {newest}\n"
    assert lc_events("history", "job1", "--from", newest + 1, "-o", form) == (0, nothing, words)
    assert lc_events("history", "job1", "--from", newest, "-o", form).err == ""


def test_an_unknown_type_is_2_and_the_known_ones_are_named(store, lc_events):
    result = lc_events("history", "job1", "--type", "Tocked")

    assert result.code == 2
    assert "Ticked" in result.err


def test_history_for_people_is_a_line_an_event(store, lc_events, read):
    lines = lc_events("history", "job1").out.splitlines()

    assert len(lines) == len(read("history", "job1"))
    assert lines[0].split(maxsplit=4) == [
        "1",
        "2024-01-01",
        "00:01:00.000",
        "GlobalManagerMessageReceived",
        "insert, generation 1 begins, Train/Waiting; no train sample is pending",
    ]
    assert lines[5].endswith("TrainingTriggered             round 1 trains on 7 samples: num_of_samples 7 is > 3")
    assert lc_events("history", "job1", "--from", 6, "--to", 6).out.splitlines() == [lines[5].strip()]


def test_a_new_life_of_a_name_is_a_line_in_its_history(tmp_path, lc_events, read):
    rounds = Rounds().arrive(9).then(deleted())
    rounds.told("Train/Waiting", operation="insert")
    stored(tmp_path / "events.db", rounds.history().events)

    lines = lc_events("history", "job1", "--store", tmp_path).out.splitlines()
    assert "   generation 2" in lines
    assert read("show", "job1", "--store", tmp_path)["generation"] == 2
    assert read("at", "job1", "--version", 5, "--store", tmp_path)["deleted"] is True
    assert lc_events("at", "job1", "--version", 5, "--store", tmp_path).out.count("deleted") == 1


def test_a_deleted_job_is_still_listed(tmp_path, lc_events):
    stored(tmp_path / "events.db", Rounds().then(deleted()).history().events)

    assert lc_events("jobs", "--store", tmp_path).out.splitlines()[1].split()[2] == "deleted"


def test_diff_names_each_field_and_the_events_that_changed_it(store, lc_events, read):
    changes = {change["field"]: change for change in read("diff", "job1", "--from", 4, "--to", 7)["changes"]}

    assert changes["round"]["from"] == 0
    assert changes["round"]["to"] == 1
    assert [(by["version"], by["name"]) for by in changes["round"]["by"]] == [(6, "TrainingTriggered")]
    assert changes["samples.seen"]["by"][0]["name"] == "SamplesArrived"
    assert "version" not in changes
    assert "updated" not in changes
    line = next(line for line in lc_events("diff", "job1", "--from", 4, "--to", 7).out.splitlines() if "round" in line)
    assert line.split() == ["round", "0", "1", "6", "TrainingTriggered"]


def test_diff_from_before_the_first_event(store, read):
    changes = {change["field"]: change for change in read("diff", "job1", "--from", 0, "--to", 1)["changes"]}

    assert (changes["generation"]["from"], changes["generation"]["to"]) == (0, 1)


@pytest.mark.parametrize(("first", "last", "code"), [(5, 5, 2), (6, 5, 2), (1, 999, 3)])
def test_diff_needs_two_points_in_order(store, lc_events, first, last, code):
    assert lc_events("diff", "job1", "--from", first, "--to", last).code == code


def test_why_is_a_sentence_and_its_facts(store, lc_events, read):
    answer = read("why", "job1")

    assert answer["sentence"] == "Round 3 has not fired: 2 samples are pending, more than 3 needed."
    assert answer["facts"]["threshold"] == 3
    assert lc_events("why", "job1").out.splitlines()[0] == answer["sentence"]
    assert read("why", "job1", "--time", "2024-01-01T00:07:30Z")["sentence"].startswith("Round 1 fired at 00:05")


def test_what_if_shows_both_courses(store, lc_events, read):
    outcome = read("what-if", "job1", "--threshold", 2)

    assert [r["round"] for r in outcome["recorded"]] == [1, 2]
    assert outcome["what_if"][0]["samples"] == 3
    assert outcome["parted_at"] == 3
    table = lc_events("what-if", "job1", "--threshold", 2).out
    assert "The two part at version 3." in table.splitlines()
    assert "is unknown" in table
    assert "Nothing would have been different." in lc_events("what-if", "job1", "--threshold", 3).out


@pytest.mark.parametrize(
    "args",
    [(), ("--operator", "~"), ("--threshold", "many"), ("--threshold", 1, "--stage", "Train"), ("--window", "x")],
)
def test_what_if_needs_a_rule_that_there_can_be(store, lc_events, args):
    assert lc_events("what-if", "job1", *args).code == 2


def test_provenance_names_records_and_files(store, lc_events, read):
    found = read("provenance", "job1", "--round", 2)

    assert found["round"] == 2
    assert [(r["rows"], r["version"]) for r in found["train"]["records"]][:1] != []
    assert sum(last - first for first, last in (r["rows"] for r in found["train"]["records"])) == 7
    assert found["train"]["files"][0]["url"] == "/output/job1/data/train/2/data.txt"
    assert found["model"]["source"] == "/output/job1/train/2/model.pkl"
    assert lc_events("provenance", "job1", "--round", 9).code == 3
    assert lc_events("provenance", "job1", "--round", 2, "--generation", 2).code == 3


def test_provenance_compares_the_files_where_they_lie(store, lc_events, tmp_path, read):
    root = tmp_path / "root"
    result = lc_events("provenance", "job1", "--round", 2, "--check", "--root", root, "-o", "json")
    assert {(each["what"], each["state"]) for each in json.loads(result.out)["checked"]} == {
        ("train", "missing"),
        ("eval", "missing"),
        ("model", "missing"),
        ("deployed", "missing"),
    }
    assert result.code == 3

    for url in ("data/train/2/data.txt", "data/eval/2/data.txt", "train/2/model.pkl", "deploy/index.pkl"):
        (root / "output/job1" / url).parent.mkdir(parents=True, exist_ok=True)
        (root / "output/job1" / url).write_bytes(b"other")
    result = lc_events("provenance", "job1", "--round", 2, "--check", "--root", root)
    assert result.code == 5
    assert "changed" in result.out

    first = lc_events("provenance", "job1", "--round", 1, "--check", "--root", root, "-o", "json")
    states = {each["what"]: each["state"] for each in json.loads(first.out)["checked"]}
    assert states["deployed"] == "replaced"


def test_text_of_a_worker_never_commands_the_terminal(tmp_path, lc_events):
    rounds = Rounds().worker("train", HOSTILE.strip(), {"url": "/x", "metrics": {HOSTILE: 1}, "z": HOSTILE}, name="w1")
    stored(tmp_path / "events.db", rounds.history().events)

    for args in (("history", "job1"), ("history", "job1", "-o", "json"), ("history", "job1", "-o", "jsonl")):
        out = lc_events(*args, "--store", tmp_path).out
        assert not set(out) & set("\x1b\x9b\u202e\x07\r")
    as_json = lc_events("history", "job1", "-o", "json", "--store", tmp_path).out
    assert json.loads(as_json)[1]["data"]["results"][0]["z"] == HOSTILE


def test_the_node_is_what_the_store_says_else_what_run_would_be_told(tmp_path, read, monkeypatch):
    stored(tmp_path / "events.db", two_rounds().history().events, node=None)
    monkeypatch.setenv("LC_NODE", "edge7")
    assert read("show", "job1", "--store", tmp_path)["node"] == "edge7"
    monkeypatch.delenv("LC_NODE")
    config = tmp_path / "lc.toml"
    config.write_text('node = "edge8"\n')
    assert read("show", "job1", "--store", tmp_path, "--config", config)["node"] == "edge8"


def test_a_broken_history_still_shows_what_can_be_read(store, lc_events):
    with Tampered(store / "events.db") as tampered:
        tampered.set_state(4, b"no json")

    assert lc_events("at", "job1", "--version", 3).code == 0
    result = lc_events("show", "job1")
    assert result.code == 5
    assert "version 4" in result.err


@pytest.mark.parametrize(
    "args",
    [("why",), ("what-if", "--threshold", 1), ("provenance", "--round", 1), ("report", "--output", "/dev/null")],
)
def test_of_a_dataset_there_is_nothing_to_explain(tmp_path, lc_events, args):
    assert lc_events("import", FOLDER / "digits.jsonl", "--store", tmp_path).code == 0
    command, *rest = args

    result = lc_events(command, "default/dataset/digits", *rest, "--store", tmp_path)

    assert result.code == 2
    assert f"{command} is of a job in a local controller's store" in result.err
