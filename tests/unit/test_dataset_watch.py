from __future__ import annotations

import os
import queue
import threading

import pytest

from lc_events.datasets import FolderWatcher, watch

DEADLINE = 20


class Notices:
    """What the watcher told, in order."""

    def __init__(self):
        self.seen = []
        self._queue = queue.Queue()

    def __call__(self, path):
        self.seen.append(path)
        self._queue.put(path)

    def wait_for(self, path):
        while self._queue.get(timeout=DEADLINE) != path:
            pass

    def drain(self):
        while not self._queue.empty():
            self._queue.get()


@pytest.fixture
def notices():
    return Notices()


@pytest.fixture
def watcher(notices, monkeypatch):
    monkeypatch.setattr(watch, "CHECK_MS", 60_000)
    with FolderWatcher(notices) as running:
        yield running
    assert not any(thread.name == "folder-watcher" for thread in threading.enumerate())


def watched(watcher, notices, path):
    watcher.watch(path)
    notices.wait_for(path)
    assert watcher.works_for(path)
    notices.drain()


def test_an_append_is_noticed(watcher, notices, tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"a\n")
    watched(watcher, notices, path)
    for _ in range(3):
        with path.open("ab") as file:
            file.write(b"b\n")
        notices.wait_for(path)


def test_a_file_that_comes_is_renamed_over_or_goes_is_noticed(watcher, notices, tmp_path):
    path = tmp_path / "data.txt"
    watched(watcher, notices, path)
    path.write_bytes(b"a\n")
    notices.wait_for(path)
    (tmp_path / "new").write_bytes(b"b\n")
    notices.drain()
    (tmp_path / "new").replace(path)
    notices.wait_for(path)
    notices.drain()
    path.unlink()
    notices.wait_for(path)


def test_files_are_taken_on_and_let_go_while_the_watcher_runs(watcher, notices, tmp_path):
    one, two, other = tmp_path / "a" / "one", tmp_path / "b" / "two", tmp_path / "b" / "other"
    for path in (one, two):
        path.parent.mkdir()
        watched(watcher, notices, path)
    watched(watcher, notices, other)
    watcher.unwatch(two)
    watcher.unwatch(two)
    while watcher.works_for(two):
        notices.wait_for(one)
    told = len(notices.seen)
    for path in (one, other):
        notices.drain()
        two.write_bytes(b"x")
        path.write_bytes(b"x")
        notices.wait_for(path)
    assert two not in notices.seen[told:]


def test_a_folder_that_is_not_there_is_watched_once_it_comes(watcher, notices, tmp_path):
    path = tmp_path / "later" / "still" / "data.txt"
    watcher.watch(path)
    notices.wait_for(path)
    assert not watcher.works_for(path)
    path.parent.parent.mkdir()
    notices.wait_for(path)
    path.parent.mkdir()
    while not watcher.works_for(path):
        notices.wait_for(path)
    notices.drain()
    path.write_bytes(b"a\n")
    notices.wait_for(path)


def test_a_folder_that_is_deleted_and_made_again_is_watched_again(watcher, notices, tmp_path):
    path = tmp_path / "folder" / "data.txt"
    path.parent.mkdir()
    watched(watcher, notices, path)
    path.parent.rmdir()
    notices.wait_for(path)
    path.parent.mkdir()
    while not watcher.works_for(path):
        notices.wait_for(path)
    notices.drain()
    path.write_bytes(b"a\n")
    notices.wait_for(path)


def test_a_change_of_the_file_behind_a_link_is_noticed_and_the_link_s_move_too(watcher, notices, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(b"a\n")
    link = tmp_path / "links" / "data.txt"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "one" / "data")
    watched(watcher, notices, link)
    (tmp_path / "one" / "data").write_bytes(b"b\n")
    notices.wait_for(link)
    notices.drain()
    (link.parent / "new").symlink_to(tmp_path / "two" / "data")
    (link.parent / "new").replace(link)
    notices.wait_for(link)
    (tmp_path / "two" / "data").write_bytes(b"b\n")
    notices.wait_for(link)


def test_a_link_further_up_that_is_moved_is_found(monkeypatch, notices, tmp_path):
    monkeypatch.setattr(watch, "CHECK_MS", 100)
    for name in ("one", "two"):
        (tmp_path / name / "data").mkdir(parents=True)
    (tmp_path / "current").symlink_to("one")
    path = tmp_path / "current" / "data" / "file"
    with FolderWatcher(notices) as watcher:
        watched(watcher, notices, path)
        (tmp_path / "new").symlink_to("two")
        (tmp_path / "new").replace(tmp_path / "current")
        notices.wait_for(path)


def test_a_folder_that_comes_later_is_watched_as_one(watcher, notices, tmp_path):
    folder = tmp_path / "later"
    watcher.watch(folder)
    notices.wait_for(folder)
    folder.mkdir()
    notices.wait_for(folder)
    (folder / "any").write_bytes(b"a\n")
    notices.wait_for(folder)


def test_of_a_folder_all_that_lies_in_it_is_noticed(watcher, notices, tmp_path):
    watched(watcher, notices, tmp_path)
    (tmp_path / "any").write_bytes(b"a\n")
    notices.wait_for(tmp_path)


def test_a_file_name_that_is_no_text_does_not_end_the_watcher(monkeypatch, notices, tmp_path):
    monkeypatch.setattr(watch, "CHECK_MS", 100)
    path = tmp_path / "data.txt"
    with FolderWatcher(notices) as watcher:
        watched(watcher, notices, path)
        (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
        path.write_bytes(b"a\n")
        notices.wait_for(path)
        notices.drain()
        path.write_bytes(b"a\nb\n")
        notices.wait_for(path)


def test_a_callback_that_fails_does_not_end_the_watcher(monkeypatch, tmp_path, caplog):
    notices = Notices()

    def fails_once(path):
        notices(path)
        if not caplog.records:
            raise RuntimeError("not ready")

    with FolderWatcher(fails_once) as watcher:
        watcher.watch(tmp_path / "a")
        notices.wait_for(tmp_path / "a")
        (tmp_path / "a").write_bytes(b"x")
        notices.wait_for(tmp_path / "a")
    assert "not ready" in caplog.text


def test_no_notices_are_promised_on_a_network_file_system(monkeypatch, notices, tmp_path):
    (tmp_path / "mountinfo").write_text(
        "36 35 98:0 / / rw,noatime shared:1 - ext4 /dev/root rw\n"
        f"37 36 0:40 / {tmp_path}/nfs\\040share rw - nfs4 server:/x rw\n"
        f"38 36 0:41 / {tmp_path}/fuse rw master:2 - fuse.sshfs host: rw\n"
    )
    monkeypatch.setattr(watch, "MOUNTS", tmp_path / "mountinfo")
    paths = {name: tmp_path / name / "data" for name in ("local", "nfs share", "fuse")}
    with FolderWatcher(notices) as watcher:
        for path in paths.values():
            path.parent.mkdir()
            watcher.watch(path)
            notices.wait_for(path)
        assert {name for name, path in paths.items() if watcher.works_for(path)} == {"local"}


def test_a_watcher_that_was_never_started_can_be_stopped(notices):
    watcher = FolderWatcher(notices)
    watcher.stop()
    watcher.stop()
    assert not watcher.works_for("/anything")
