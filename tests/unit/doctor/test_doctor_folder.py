from __future__ import annotations

import errno
import os
from typing import NamedTuple

import pytest

from lc_events.controller.quarantine import Quarantine
from lc_events.doctor import folder as disks
from lc_events.doctor.finding import Level
from lc_events.doctor.folder import check_disks, check_folder, check_quarantine, holder
from lc_events.runtime.lock import FolderLock


class Disk(NamedTuple):
    """What `os.statvfs` tells."""

    f_bavail: int = 10**7
    f_frsize: int = 4096
    f_blocks: int = 10**8
    f_files: int = 10**6
    f_favail: int = 10**5
    f_flag: int = 0


def test_a_folder_that_a_process_has_is_told_with_its_id_and_stays_its(tmp_path):
    assert holder(tmp_path) is None
    lock = FolderLock(tmp_path, "LC_STATE_DIR")
    assert holder(tmp_path) == str(os.getpid())
    assert holder(tmp_path) == str(os.getpid())
    lock.release()
    assert holder(tmp_path) is None
    FolderLock(tmp_path, "LC_STATE_DIR").release()


def test_a_folder_on_a_file_system_without_locks_is_used_by_nobody(tmp_path, monkeypatch):
    def has_no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    FolderLock(tmp_path, "LC_STATE_DIR").release()
    monkeypatch.setattr(disks.fcntl, "flock", has_no_locks)
    assert holder(tmp_path) is None


def test_a_folder_that_is_not_there_is_no_fault(tmp_path):
    [finding] = check_folder(tmp_path / "none", None)
    assert finding.level is Level.NOTE


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({}, Level.OK, "41 GB of 410 GB are free"),
        ({"f_bavail": 100_000}, Level.NOTE, "410 MB"),
        ({"f_bavail": 1000}, Level.WRONG, "4 MB"),
        ({"f_bavail": 0}, Level.WRONG, "0 bytes"),
        ({"f_favail": 0}, Level.WRONG, "inode"),
        ({"f_files": 0, "f_favail": 0}, Level.OK, "free"),
        ({"f_flag": os.ST_RDONLY}, Level.WRONG, "read-only"),
        ({"f_bavail": 10**10, "f_blocks": 10**10}, Level.OK, "41.0 TB"),
    ],
)
def test_room_on_a_disk_is_judged(tmp_path, monkeypatch, change, level, words):
    monkeypatch.setattr(disks.os, "statvfs", lambda _: Disk(**change))
    [finding] = check_disks([tmp_path, tmp_path / "not" / "there"])
    assert finding.level is level
    assert words in finding.says


def test_nothing_refused_is_no_line_of_trouble(tmp_path):
    [finding] = check_quarantine(tmp_path / "none")
    assert finding.level is Level.OK


def test_what_was_dropped_after_a_flood_is_told_beside_what_is_kept(tmp_path):
    quarantine = Quarantine(tmp_path / "quarantine")
    for number in range(103):
        quarantine.put(
            time=f"2024-01-01T00:00:{number:06}Z",
            topic="sedna/down/edge1",
            code="malformed",
            error="no JSON",
            payload=b"{",
            is_synced=False,
        )
    [finding] = check_quarantine(tmp_path / "quarantine")
    assert finding.level is Level.NOTE
    assert finding.says == "100 refused messages are kept: malformed 100; 3 older ones were dropped"
