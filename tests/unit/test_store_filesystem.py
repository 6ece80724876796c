from __future__ import annotations

from pathlib import Path

import pytest

from lc_events.application.filesystem import network_file_system

LINE = "36 35 98:0 / {point} rw,noatime master:1 - {kind} source rw"


def mounts(folder: Path, *lines: tuple[str, str]) -> Path:
    file = folder / "mountinfo"
    file.write_text("\n".join(LINE.format(point=point, kind=kind) for point, kind in lines) + "\n")
    return file


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_named(tmp_path, kind):
    table = mounts(tmp_path, ("/", "ext4"), ("/mnt/share", kind))
    assert network_file_system(Path("/mnt/share/lc-state/events.db"), table) == kind
    assert network_file_system(Path("/mnt/share2/events.db"), table) is None


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse.fuse-overlayfs", "fuseblk", "zfs"])
def test_a_local_file_system_is_none(tmp_path, kind):
    assert network_file_system(Path("/data/events.db"), mounts(tmp_path, ("/", "nfs"), ("/data", kind))) is None


def test_the_last_of_two_mounts_on_one_point_counts(tmp_path):
    table = mounts(tmp_path, ("/", "ext4"), ("/mnt", "nfs"), ("/mnt", "ext4"))
    assert network_file_system(Path("/mnt/events.db"), table) is None


def test_a_mount_point_with_a_blank_is_found(tmp_path):
    table = mounts(tmp_path, ("/", "ext4"), (r"/mnt/my\040share", "nfs4"))
    assert network_file_system(Path("/mnt/my share/events.db"), table) == "nfs4"


def test_a_system_without_such_a_table_says_nothing(tmp_path):
    assert network_file_system(tmp_path / "events.db", tmp_path / "none") is None
