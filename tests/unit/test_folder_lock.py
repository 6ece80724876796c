from __future__ import annotations

import errno
import os

import pytest

from lc_events.errors import ConflictError, StoreError
from lc_events.runtime import lock as locks
from lc_events.runtime.lock import FolderLock


def test_a_second_program_is_told_who_has_the_folder_and_what_to_do(tmp_path):
    with FolderLock(tmp_path, "LC_STORE"), pytest.raises(ConflictError) as caught:
        FolderLock(tmp_path, "LC_STORE")

    advice = "end it; for other nodes, give this program another LC_STORE"
    assert str(caught.value) == f"{tmp_path} is in use by process {os.getpid()}: {advice}"


def test_a_folder_whose_program_ended_is_free_again(tmp_path):
    with FolderLock(tmp_path, "LC_STATE_DIR"):
        pass

    FolderLock(tmp_path, "LC_STATE_DIR").release()
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_file_system_without_locks_is_not_taken_for_a_folder_in_use(tmp_path, monkeypatch):
    def has_no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks.fcntl, "flock", has_no_locks)
    with pytest.raises(StoreError, match="No locks available; let GM_STATE_DIR name a folder on a disk"):
        FolderLock(tmp_path, "GM_STATE_DIR")
