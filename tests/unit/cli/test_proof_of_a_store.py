from __future__ import annotations

import json
import os
import resource
import signal

import pytest
from support.given import STREAM
from support.rounds import two_rounds
from support.sedna import DATASET, dataset_resource, down
from support.stores import stored, writing
from support.tampering import Tampered

from lc_events.controller.outbox import POSITION
from lc_events.domain.dataset import DatasetState, receive_dataset_message
from lc_events.runtime.lock import FolderLock

EVENTS = two_rounds().history().events
NEWEST = len(EVENTS)
DATASET_STREAM = "default/dataset/ds"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A state folder whose store holds a job and its dataset."""
    folder = tmp_path / "lc"
    monkeypatch.setenv("LC_STATE_DIR", str(folder))
    monkeypatch.setenv("LC_TIMEZONE", "UTC")
    message = down(dataset_resource(), kind=DATASET, name="ds")
    dataset, _ = receive_dataset_message(DatasetState(DATASET_STREAM), message, "2024-01-01T00:00:00.000000Z")
    stored(folder / "events.db", EVENTS, dataset)
    return folder / "events.db"


@pytest.fixture
def export(store, tmp_path, lc_events):
    """An export of that store."""
    path = tmp_path / "export.jsonl"
    assert lc_events("export", "--output", path).code == 0
    return path


def head_of(lc_events, job="job1"):
    return json.loads(lc_events("verify", job, "-o", "json").out)


def retained(head, name="job1", node="edge1"):
    payload = json.dumps({"version": head["version"], "hash": head["hash"], "time": "2024-01-01T00:00:00Z"})
    return f"sedna/state/{node}/heads/default/{name} {payload}"


def test_a_sound_store_is_ok(store, lc_events):
    assert lc_events("verify").out.splitlines()[1].split()[:3] == ["default/dataset/ds", "ok", "1"]
    result = lc_events("verify", "-o", "json")
    assert result.code == 0
    found = json.loads(result.out)
    assert found["ok"] is True
    assert [(each["stream"], each["ok"]) for each in found["streams"]] == [(DATASET_STREAM, True), (STREAM, True)]


def test_one_job_is_answered_as_over_mqtt(store, lc_events):
    head = head_of(lc_events)

    assert head == {"ok": True, "version": NEWEST, "hash": head["hash"]}
    assert len(head["hash"]) == 64


def test_a_tampered_store_is_5_with_the_version_and_what_is_wrong(store, lc_events):
    with Tampered(store) as tampered:
        tampered.set_fields(9, id="other")

    result = lc_events("verify", "job1", "-o", "json")
    answer = json.loads(result.out)
    assert result.code == 5
    assert (answer["ok"], answer["version"]) == (False, 9)
    assert result.err == f"lc-events: {STREAM} version 9: {answer['error']}\n"
    table = lc_events("verify")
    assert table.code == 5
    assert table.out.splitlines()[2].split()[:3] == ["default/job1", "BROKEN", "9"]


def test_a_hole_in_the_log_is_5(store, lc_events):
    with Tampered(store) as tampered:
        tampered.run("DELETE FROM stored_events WHERE originator_version = ?", NEWEST)

    result = lc_events("verify", "-o", "json")
    assert result.code == 5
    assert json.loads(result.out)["error"] == f"the log has a hole: event or link number {NEWEST} is missing"


def test_heads_seen_elsewhere_are_compared(store, lc_events, tmp_path):
    head = head_of(lc_events)
    heads = tmp_path / "heads"

    heads.write_text(f"{retained(head)}\n\nsedna/state/edge1/heads/default/gone\n{retained(head, node='edge2')}\n")
    result = lc_events("verify", "--head", heads)
    assert result.code == 0
    assert result.err == f"lc-events: heads in {heads} that are of other nodes than edge1, and are not compared: 1\n"

    heads.write_text(retained({"version": NEWEST + 2, "hash": "0" * 64}))
    result = lc_events("verify", "job1", "--head", heads, "-o", "json")
    assert result.code == 5
    assert json.loads(result.out)["version"] == NEWEST + 1

    heads.write_text(retained({"version": 3, "hash": "0" * 64}, name="vanished"))
    result = lc_events("verify", "--head", heads)
    assert result.code == 5
    assert "the whole stream is missing" in result.err


@pytest.mark.parametrize(
    "line",
    [
        '{"version":3,"hash":"%s"}',
        '{"topic":"sedna/state/edge1/heads/default/job1","payload":{"version":3,"hash":"%s"}}',
        '{"topic":"a/b/state/edge1/heads/default/job1","payload":"{\\"version\\":3,\\"hash\\":\\"%s\\"}"}',
    ],
)
def test_a_head_may_be_written_in_other_ways(store, lc_events, tmp_path, line):
    hash_ = json.loads(lc_events("history", "job1", "--from", 3, "--to", 3, "-o", "jsonl").out)["hash"]
    heads = tmp_path / "heads"

    heads.write_text(line % hash_)
    assert lc_events("verify", "job1", "--head", heads).code == 0
    heads.write_text(line % ("0" * 64))
    assert lc_events("verify", "job1", "--head", heads).code == 5


@pytest.mark.parametrize("text", ["nonsense", "{}", '{"version":0,"hash":"x"}', "sedna/state/edge1/heads/default/j {}"])
def test_what_is_no_head_is_2(store, lc_events, tmp_path, text):
    (tmp_path / "heads").write_text(text)
    assert lc_events("verify", "job1", "--head", tmp_path / "heads").code == 2
    assert lc_events("verify", "job1", "--head", tmp_path / "none").code == 3


def test_a_head_without_a_topic_needs_a_job(store, lc_events, tmp_path):
    (tmp_path / "heads").write_text(json.dumps(head_of(lc_events)))

    assert lc_events("verify", "job1", "--head", tmp_path / "heads").code == 0
    assert lc_events("verify", "--head", tmp_path / "heads").code == 2


def test_an_export_is_a_cloud_event_with_its_stored_bytes_a_line(store, export, lc_events):
    lines = [json.loads(line) for line in export.read_bytes().splitlines()]
    job = [line for line in lines if line["subject"] == STREAM]

    assert len(lines) == NEWEST + 1
    stored_bytes = [line.pop("stored") for line in job]
    assert job == json.loads(lc_events("history", "job1", "-o", "json").out)
    assert all(isinstance(text, str) for text in stored_bytes)


def test_an_export_verifies_without_the_store(store, export, lc_events):
    head = head_of(lc_events)
    store.rename(store.with_name("moved.db"))

    assert json.loads(lc_events("verify", "job1", "--file", export, "-o", "json").out) == head
    assert lc_events("verify", "--file", export).code == 0
    assert lc_events("verify", "job2", "--file", export).code == 3
    assert lc_events("verify", "--file", export, "--store", store).code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"samples":7', b'"samples":8'),
        (b".TrainingTriggered.v1", b".EvaluationTriggered.v1"),
        (b'"sequence":6', b'"sequence":66'),
        (b'"prevhash":"', b'"prevhash":"0'),
        (b'"hash":"', b'"hash":"0'),
        (b'"id":"edge1/', b'"id":"edge2/'),
        (b'"datacontenttype":"application/json"', b'"datacontenttype":"text/html"'),
    ],
)
def test_a_changed_line_of_an_export_is_5(export, lc_events, old, new):
    lines = export.read_bytes().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b"TrainingTriggered" in line)
    assert old in lines[number]
    lines[number] = lines[number].replace(old, new, 1)
    export.write_bytes(b"".join(lines))

    result = lc_events("verify", "job1", "--file", export, "-o", "json")
    assert result.code == 5
    assert json.loads(result.out)["version"] == 6


@pytest.mark.parametrize("change", ["swap", "remove", "repeat"])
def test_lines_in_another_order_are_5(export, lc_events, change):
    lines = export.read_bytes().splitlines(keepends=True)
    if change == "swap":
        lines[4], lines[5] = lines[5], lines[4]
    elif change == "remove":
        del lines[4]
    else:
        lines.insert(4, lines[4])
    export.write_bytes(b"".join(lines))

    assert lc_events("verify", "--file", export).code == 5


def test_a_cut_export_is_5_only_against_a_head(export, lc_events, tmp_path):
    (tmp_path / "heads").write_text(retained(head_of(lc_events)))
    export.write_bytes(b"".join(export.read_bytes().splitlines(keepends=True)[:-1]))

    assert lc_events("verify", "--file", export).code == 0
    assert lc_events("verify", "--file", export, "--head", tmp_path / "heads").code == 5


@pytest.mark.parametrize("content", [b"", b"{}\n", b"no json\n", b'{"stored":"%%%"}\n'])
def test_what_is_no_export_is_2(lc_events, tmp_path, content):
    (tmp_path / "file").write_bytes(content)

    assert lc_events("verify", "--file", tmp_path / "file").code == 2
    assert lc_events("import", tmp_path / "file", "--store", tmp_path / "new.db").code == 2


def test_an_export_is_not_written_over_a_file_unless_told(store, export, lc_events):
    assert lc_events("export", "--output", export).code == 4
    assert lc_events("export", "job1", "--output", export, "--force").code == 0
    assert len(export.read_bytes().splitlines()) == NEWEST


def test_an_export_touches_no_file_but_its_own(store, lc_events, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "export.jsonl.part").write_text("somebody else's")
    assert lc_events("export", "-o", folder / "export.jsonl").code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["export.jsonl", "export.jsonl.part"]
    assert (folder / "export.jsonl.part").read_text() == "somebody else's"


def test_an_export_that_finds_no_room_leaves_nothing_and_what_was_there(store, export, lc_events):
    before, names = export.read_bytes(), sorted(export.parent.iterdir())
    room = 33_000  # for SQLite's shared memory
    assert len(before) > room
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limit[1]))
    try:
        result = lc_events("export", "-o", export, "--force")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert (result.code, "cannot be written" in result.err) == (1, True)
    assert (export.read_bytes(), sorted(export.parent.iterdir())) == (before, names)


def test_an_export_does_not_take_the_place_of_what_is_no_file(store, lc_events, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert lc_events("export", "-o", pipe, "--force").code == 2
    assert pipe.is_fifo()


def test_an_export_may_go_to_standard_output(store, export, lc_events):
    assert lc_events("export", "-o", "-").out.encode() == export.read_bytes()


def test_an_import_gives_the_same_state_and_chain(store, export, lc_events, tmp_path):
    new = tmp_path / "other" / "events.db"
    before = lc_events("show", "job1", "-o", "json").out

    result = lc_events("import", export, "--store", new)
    assert (result.code, result.out) == (0, f"default/dataset/ds: 1 events\ndefault/job1: {NEWEST} events\n")
    assert lc_events("show", "job1", "-o", "json", "--store", new).out == before
    again = tmp_path / "again.jsonl"
    assert lc_events("export", "--output", again, "--store", new).code == 0
    assert again.read_bytes() == export.read_bytes()
    assert lc_events("verify", "--store", new).code == 0


def test_what_is_imported_is_not_published_again(export, lc_events, tmp_path):
    new = tmp_path / "other" / "events.db"
    assert lc_events("import", export, "--store", new).code == 0
    journal = writing(new)
    assert journal.rows.position(POSITION) == NEWEST + 1


def test_an_import_over_a_stream_that_is_there_is_4_and_changes_nothing(store, export, lc_events):
    before = lc_events("export", "-o", "-").out
    result = lc_events("import", export)

    assert result.code == 4
    assert f"has {DATASET_STREAM} already" in result.err
    assert lc_events("export", "-o", "-").out == before


def test_an_import_into_the_store_of_another_node_is_4(export, lc_events, tmp_path):
    stored(tmp_path / "new" / "events.db", node="edge9")

    result = lc_events("import", export, "--store", tmp_path / "new")
    assert result.code == 4
    assert "edge9" in result.err


def test_an_import_beside_events_that_are_not_published_is_4(export, lc_events, tmp_path):
    stored(tmp_path / "new" / "events.db", EVENTS[:1])

    only = tmp_path / "dataset.jsonl"
    only.write_bytes(export.read_bytes().splitlines(keepends=True)[0])
    result = lc_events("import", only, "--store", tmp_path / "new")
    assert result.code == 4
    assert "not published yet" in result.err


def test_an_import_into_a_folder_that_a_controller_has_is_4(export, lc_events, tmp_path):
    lock = FolderLock(tmp_path / "new", "LC_STATE_DIR")
    try:
        result = lc_events("import", export, "--store", tmp_path / "new" / "events.db")
    finally:
        lock.release()

    assert result.code == 4
    assert str(os.getpid()) in result.err


def test_a_broken_export_is_not_imported(export, lc_events, tmp_path):
    export.write_bytes(export.read_bytes().replace(b'"samples":7', b'"samples":8', 1))

    assert lc_events("import", export, "--store", tmp_path / "new.db").code == 5
    assert not (tmp_path / "new.db").exists()
