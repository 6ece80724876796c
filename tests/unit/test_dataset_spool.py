from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import stat
import tempfile
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lc_events.datasets import Spool
from lc_events.errors import StorageError

RECORDS = [b"one\n", b'"two\nlines"\n', b"\n", b"four\n", b"x" * 50 + b"\n"]


ENTRY = 16
"""Bytes of the index for each record."""


def append(spool, records):
    ends = []
    for record in records:
        ends.append((ends[-1] if ends else 0) + len(record))
    return spool.append(b"".join(records), ends)


def read(spool, first, last):
    return b"".join(spool.read(first, last))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state" / "spool" / "cars"


def test_records_are_numbered_from_0_and_read_back_by_number(folder):
    spool = Spool(folder)
    assert append(spool, RECORDS[:2]) == (0, 2)
    assert append(spool, RECORDS[2:]) == (2, 5)
    assert (spool.first, spool.length) == (0, 5)
    assert read(spool, 0, 5) == b"".join(RECORDS)
    assert read(spool, 1, 3) == RECORDS[1] + RECORDS[2]
    assert read(spool, 3, 3) == b""


def test_a_new_process_finds_what_was_synced(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    again = Spool(folder)
    assert again.length == 5
    assert append(again, [b"six\n"]) == (5, 6)
    assert read(again, 4, 6) == RECORDS[4] + b"six\n"


def test_only_the_owner_can_read_the_spool(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_record_may_come_in_pieces(folder):
    spool = Spool(folder, segment_bytes=4)
    assert spool.append(b"a\nlong", [2]) == (0, 1)
    assert spool.append(b" long", []) == (1, 1)
    assert spool.append(b" line\nb\nc", [6, 8]) == (1, 3)
    assert read(spool, 0, 3) == b"a\nlong long line\nb\n"
    spool.cut(3)
    assert append(spool, [b"d\n"]) == (3, 4)
    assert read(spool, 2, 4) == b"b\nd\n"


def test_a_failed_commit_is_cut_off_and_its_numbers_are_given_again(folder):
    spool = Spool(folder, segment_bytes=8)
    append(spool, RECORDS[:1])
    append(spool, RECORDS[1:])
    spool.cut(1)
    assert append(spool, [b"other\n"]) == (1, 2)
    assert read(spool, 0, 2) == b"one\nother\n"


def test_trimming_deletes_whole_segments_and_never_gives_a_number_again(folder):
    spool = Spool(folder, segment_bytes=4)
    for record in RECORDS:
        append(spool, [record])
    before = len(list(folder.iterdir()))
    spool.trim(3)
    assert len(list(folder.iterdir())) == before
    spool.commit()
    spool.trim(3)
    assert spool.first == 2
    assert len(list(folder.iterdir())) == before - 2
    assert read(spool, 3, 5) == b"".join(RECORDS[3:])
    with pytest.raises(StorageError, match="record 0 is not in the spool"):
        read(spool, 0, 1)
    spool.trim(5)
    assert list(folder.iterdir()) == []
    assert append(spool, [b"six\n"]) == (5, 6)
    again = Spool(folder)
    again.cut(6)
    assert read(again, 5, 6) == b"six\n"


def test_trimming_leaves_a_record_that_has_only_begun(folder):
    spool = Spool(folder)
    spool.append(b"a\nbeg", [2])
    spool.commit()
    spool.trim(1)
    spool.append(b"un\n", [3])
    assert read(spool, 1, 2) == b"begun\n"


def test_an_empty_folder_goes_on_at_the_committed_number(folder):
    spool = Spool(folder)
    spool.cut(7)
    assert append(spool, [b"eight\n"]) == (7, 8)
    assert read(spool, 7, 8) == b"eight\n"


def test_a_deleted_spool_loses_only_what_it_held(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    shutil.rmtree(folder)
    with pytest.raises(StorageError, match="records 0 to 4 are not in the spool"):
        read(spool, 0, 5)
    with pytest.raises(StorageError):
        append(spool, [b"six\n"])
    spool.cut(5)
    assert append(spool, [b"six\n"]) == (5, 6)
    assert read(spool, 5, 6) == b"six\n"
    with pytest.raises(StorageError, match="records 0 to 4"):
        read(spool, 0, 5)


@pytest.mark.parametrize("suffix", [".data", ".index"])
def test_a_shortened_spool_says_so_for_the_lost_records_only(folder, suffix):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    (path,) = folder.glob(f"*{suffix}")
    os.truncate(path, path.stat().st_size - 1)
    spool = Spool(folder)
    spool.cut(5)
    assert append(spool, [b"six\n"]) == (5, 6)
    assert read(spool, 0, 4) + read(spool, 5, 6) == b"".join(RECORDS[:4]) + b"six\n"
    with pytest.raises(StorageError, match="files were lost"):
        read(spool, 3, 6)


def test_what_is_lost_is_told_by_its_numbers(folder):
    spool = Spool(folder, segment_bytes=4)
    for record in RECORDS:
        append(spool, [record])
    spool.sync()
    assert spool.is_whole()
    assert spool.lost(0, 5) == []
    (folder / f"{0:020}.data").unlink()
    os.truncate(folder / f"{2:020}.index", ENTRY)
    assert not spool.is_whole()
    spool.cut(5)
    assert spool.is_whole()
    assert spool.lost(0, 5) == [(0, 2), (3, 5)]
    assert spool.lost(2, 3) == []
    assert spool.lost(1, 4) == [(1, 2), (3, 4)]
    assert read(spool, 2, 3) == RECORDS[2]


def test_lost_records_that_are_restored_are_where_they_were(folder):
    spool = Spool(folder, segment_bytes=8)
    append(spool, RECORDS[:3])
    append(spool, RECORDS[3:])
    spool.sync()
    spool.commit()
    (folder / f"{0:020}.index").unlink()
    spool.cut(5)
    assert spool.lost(0, 5) == [(0, 4)]
    with spool.restoring(0) as part:
        append(part, RECORDS[:4])
    assert read(spool, 0, 5) == b"".join(RECORDS)
    again = Spool(folder, segment_bytes=8)
    again.cut(5)
    assert read(again, 0, 5) == b"".join(RECORDS)
    assert append(again, [b"six\n"]) == (5, 6)
    assert not (folder / "restored").exists()


def test_restored_records_that_reach_over_a_lost_segment_stay_as_long_as_they_are_needed(folder):
    spool, numbers = Spool(folder, segment_bytes=40), [b"%09d\n" % number for number in range(20)]
    for first, last in ((0, 3), (3, 8), (8, 12), (12, 20)):
        append(spool, numbers[first:last])
    spool.sync()
    spool.commit()
    (folder / f"{9:020}.data").unlink()
    spool.cut(20)
    assert spool.lost(0, 20) == [(9, 20)]
    with spool.restoring(8) as part:
        append(part, numbers[8:12])
        append(part, numbers[12:20])
    for below in range(9, 14):
        spool.trim(below)
        assert spool.lost(below, 20) == []
        assert read(spool, below, 20) == b"".join(numbers[below:])
    assert spool.first > 0
    spool.trim(20)
    assert list(folder.iterdir()) == []


def test_a_restoring_takes_nothing_from_a_segment_that_holds_more(folder):
    spool, batches = Spool(folder, segment_bytes=8), (RECORDS[:2], [b"3\n", b"4\n"], [b"5\n"])
    for batch in batches:
        append(spool, batch)
    spool.sync()
    spool.commit()
    (folder / f"{0:020}.data").unlink()
    spool.cut(5)
    assert spool.lost(0, 5) == [(0, 3)]
    with spool.restoring(0) as part:
        for batch in batches[:2]:
            append(part, batch)
    assert spool.lost(0, 5) == []
    assert read(spool, 0, 5) == b"".join(RECORDS[:2]) + b"3\n4\n5\n"


def test_a_restoring_that_fails_leaves_what_was_there_and_no_file_open(folder):
    append(spool := Spool(folder, segment_bytes=8), RECORDS)
    spool.sync()
    spool.commit()

    def half_restored():
        with spool.restoring(0) as part:
            append(part, [b"other\n"])
            raise RuntimeError

    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(RuntimeError):
        half_restored()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert read(spool, 0, 5) == b"".join(RECORDS)
    assert not (folder / "restored").exists()


def test_what_a_killed_restoring_left_goes_at_the_start(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    (folder / "restored").mkdir()
    (folder / "restored" / f"{0:020}.data").write_bytes(b"a half")
    Spool(folder).cut(5)
    assert not (folder / "restored").exists()


def test_files_that_are_put_back_are_found_by_the_next_cut(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    away = folder.with_name("away")
    folder.rename(away)
    spool.cut(5)
    append(spool, [b"six\n"])
    spool.sync()
    spool.commit()
    for path in away.iterdir():
        path.rename(folder / path.name)
    spool.cut(6)
    assert read(spool, 0, 6) == b"".join(RECORDS) + b"six\n"


@pytest.mark.parametrize("suffix", [".data", ".index"])
def test_foreign_bytes_are_no_records(folder, suffix):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    (path,) = folder.glob(f"*{suffix}")
    path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(StorageError, match="not as written") as caught:
        read(spool, 0, 5)
    assert (caught.value.code, str(path.with_suffix(".data")) in str(caught.value)) == ("damaged", True)
    assert spool.lost(0, 5) == [(0, 5)]
    spool.cut(5)
    assert spool.lost(0, 5) == [(0, 5)]


@pytest.mark.parametrize("tail", [bytes(8), bytes(4096), b"\xff" * 8, b"\0" * 5])
def test_what_a_power_cut_left_at_the_end_of_the_index_takes_no_record_along(folder, tail):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    (path,) = folder.glob("*.index")
    path.write_bytes(path.read_bytes() + tail)
    spool = Spool(folder)
    spool.cut(5)
    assert spool.lost(0, 5) == []
    assert append(spool, [b"six\n"]) == (5, 6)
    assert read(spool, 0, 6) == b"".join(RECORDS) + b"six\n"


def overwrite(path, at, entries):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(entries)


@pytest.mark.parametrize("opened", ["before", "after"])
@pytest.mark.parametrize(("number", "neighbour"), [(1, 0), (2, 1), (2, 3), (4, 3)])
def test_an_end_that_is_that_of_its_neighbour_gives_no_record_too_few_or_too_many(folder, number, neighbour, opened):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.index")
    overwrite(path, number * ENTRY, path.read_bytes()[neighbour * ENTRY :][:ENTRY])
    if opened == "after":
        spool = Spool(folder)
        spool.cut(5)
    for first, last in ((0, number + 1), (number + 1, 5)):
        try:
            assert read(spool, first, last) == b"".join(RECORDS[first:last])
        except StorageError:
            assert spool.lost(first, last)
    assert spool.lost(0, 5)


@pytest.mark.parametrize("at", [3, 4, 20])
def test_fewer_newlines_than_records_are_seen(folder, at):
    append(spool := Spool(folder), [b"%03d\n" % number for number in range(10)])
    spool.sync()
    (path,) = folder.glob("*.data")
    overwrite(path, at, b"x" * 8)
    with pytest.raises(StorageError) as caught:
        read(spool, 0, 10)
    assert caught.value.code == "damaged"
    assert spool.lost(0, 10) == [(0, 10)]


@pytest.mark.parametrize("suffix", [".data", ".index"])
@pytest.mark.parametrize("first", [0, 3])
def test_damaged_records_are_restored_and_what_is_beside_them_stays(folder, suffix, first):
    numbers = [b"%03d\n" % number for number in range(5)]
    append(spool := Spool(folder), numbers)
    append(spool, [b"six\n"])
    spool.sync()
    spool.commit()
    (path,) = folder.glob(f"*{suffix}")
    width = {".index": ENTRY, ".data": 4}[suffix]
    overwrite(path, 3 * width, bytes(width))
    with pytest.raises(StorageError):
        read(spool, first, 4)
    spool.cut(6)
    assert spool.lost(first, 4) == [(first, 4)]
    with spool.restoring(first) as part:
        append(part, numbers[first:])
    assert spool.lost(first, 6) == []
    assert read(spool, first, 6) == b"".join(numbers[first:]) + b"six\n"
    assert append(spool, [b"seven\n"]) == (6, 7)
    assert read(spool, first, 7) == b"".join(numbers[first:]) + b"six\nseven\n"


@pytest.mark.parametrize("end", [80, 1 << 63, (1 << 64) - 2])
def test_an_end_behind_the_data_is_a_loss(folder, end):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    (path,) = folder.glob("*.index")
    for number in (3, 4):
        overwrite(path, number * ENTRY, (end + number - 3).to_bytes(8, "little"))
    for first, last in ((4, 5), (0, 5)):
        with pytest.raises(StorageError):
            read(spool, first, last)
    spool.cut(5)
    assert spool.lost(0, 5) == [(3, 5)]
    assert read(spool, 0, 3) == b"".join(RECORDS[:3])


def test_restored_records_are_read_where_a_damaged_piece_holds_the_same_ones(folder):
    spool, numbers = Spool(folder, segment_bytes=40), [b"%09d\n" % number for number in range(20)]
    for number in numbers:
        append(spool, [number])
    spool.sync()
    spool.commit()
    overwrite(folder / f"{5:020}.data", 9, b"x" * 10)
    with pytest.raises(StorageError):
        read(spool, 2, 20)
    with spool.restoring(2) as part:
        append(part, numbers[2:18])
    assert spool.lost(0, 20) == []
    assert read(spool, 0, 20) == b"".join(numbers)


def test_damage_that_nobody_has_read_yet_does_not_outlive_a_restoring_of_the_same_records(folder):
    spool, numbers = Spool(folder, segment_bytes=1), [b"%03d\n" % number for number in range(6)]
    for number in numbers:
        append(spool, [number])
    spool.sync()
    spool.commit()
    (folder / f"{2:020}.index").unlink()
    spool.cut(6)
    (folder / f"{4:020}.data").write_bytes(bytes(8))
    with spool.restoring(1) as part:
        append(part, numbers[1:])
    assert [read(spool, first, 6) for first in range(6)] == [b"".join(numbers[first:]) for first in range(6)]


def test_a_read_that_meets_damage_finds_all_there_is_in_its_range(folder):
    spool, numbers = Spool(folder, segment_bytes=1), [b"%03d\n" % number for number in range(10)]
    for number in numbers:
        append(spool, [number])
    spool.sync()
    spool.commit()
    for first in (2, 6, 8):
        (folder / f"{first:020}.data").write_bytes(bytes(8))
    with pytest.raises(StorageError):
        read(spool, 0, 8)
    assert spool.lost(0, 10) == [(2, 4), (6, 8)]


def test_of_damaged_records_those_that_cannot_be_restored_are_looked_at_again(folder):
    numbers = [b"%03d\n" % number for number in range(6)]
    append(spool := Spool(folder), numbers)
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.data")
    overwrite(path, 3 * 4, bytes(4))
    with pytest.raises(StorageError):
        read(spool, 0, 6)
    assert spool.lost(0, 6) == [(0, 6)]
    with spool.restoring(2) as part:
        append(part, numbers[2:])
    assert spool.lost(0, 6) == []
    assert read(spool, 0, 6) == b"".join(numbers)


def test_damaged_files_that_are_put_back_are_found_by_the_next_cut(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.data")
    before = path.read_bytes()
    overwrite(path, 0, bytes(len(before)))
    with pytest.raises(StorageError):
        read(spool, 1, 4)
    path.write_bytes(before)
    spool.cut(5)
    assert spool.lost(0, 5) == []
    assert read(spool, 0, 5) == b"".join(RECORDS)


def a_link_to_nowhere(path):
    path.symlink_to("nowhere")


def a_link_to_itself(path):
    path.symlink_to(path.name)


def a_socket(path):
    os.mknod(path, stat.S_IFSOCK | 0o600)


def a_folder_with_files(path):
    path.mkdir()
    (path / "precious").write_bytes(b"kept")


@pytest.mark.parametrize("suffix", [".data", ".index"])
@pytest.mark.parametrize("put", [os.mkfifo, a_socket, a_link_to_nowhere, a_link_to_itself, a_folder_with_files])
def test_what_is_no_regular_file_is_lost_and_makes_way_for_what_is_restored(folder, put, suffix):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    spool.commit()
    (path,) = folder.glob(f"*{suffix}")
    path.unlink()
    put(path)
    with pytest.raises(StorageError) as caught:
        read(spool, 0, 5)
    assert caught.value.code == "lost"
    assert not spool.is_whole()
    spool.cut(5)
    assert spool.lost(0, 5) == [(0, 5)]
    assert Spool(folder).length == 0
    with spool.restoring(0) as part:
        append(part, RECORDS)
    assert read(spool, 0, 5) == b"".join(RECORDS)
    assert [each.read_bytes() for each in folder.glob("*.aside/precious")] == [b"kept"] * (put is a_folder_with_files)


@pytest.mark.parametrize("put", [os.mkfifo, a_socket, a_link_to_nowhere, a_folder_with_files])
def test_appends_go_on_where_something_else_than_a_file_is_in_the_way(folder, put):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    put(folder / f"{5:020}.data")
    (folder / f"{0:020}.data").unlink()
    put(folder / f"{0:020}.data")
    with pytest.raises(StorageError):
        append(spool, [b"six\n"])
    spool.cut(5)
    assert append(spool, [b"six\n"]) == (5, 6)
    assert read(spool, 5, 6) == b"six\n"


def test_a_named_pipe_in_place_of_the_folder_of_a_restoring_holds_nobody(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    os.mkfifo(folder / "restored")
    spool.cut(5)
    assert not (folder / "restored").exists()
    assert read(spool, 0, 5) == b"".join(RECORDS)


def test_a_full_disk_is_told_and_cut_off(folder):
    append(spool := Spool(folder), RECORDS)
    spool.sync()
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, old_limit[1]))
    try:
        for _ in range(2):
            with pytest.raises(StorageError):
                append(spool, [b"y" * 200 + b"\n"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    spool.cut(5)
    assert append(spool, [b"six\n"]) == (5, 6)
    assert read(spool, 0, 6) == b"".join(RECORDS) + b"six\n"


class Disk:
    """Some bytes of some files cannot be read from it."""

    def __init__(self) -> None:
        self._bad: dict[int, range] = {}

    def spoil(self, path: Path, first: int, last: int) -> None:
        self._bad[path.stat().st_ino] = range(first, last)

    def open(self, path: Path) -> FileIO:
        """As the spool opens what it reads."""
        spoilt = self._bad

        class Reader(FileIO):
            def read(self, size: int = -1) -> bytes:
                stat, at = os.fstat(self.fileno()), self.tell()
                bad = spoilt.get(stat.st_ino, range(0))
                if at < bad.stop and bad.start < (stat.st_size if size < 0 else at + size):
                    raise OSError(errno.EIO, "Input/output error")
                return super().read(size)

        return Reader(path, "rb")


@pytest.fixture
def disk(monkeypatch):
    found = Disk()
    monkeypatch.setattr("lc_events.datasets.segment._open_regular", found.open)
    return found


@pytest.mark.parametrize(("suffix", "width"), [(".index", ENTRY), (".data", 4)])
@pytest.mark.parametrize("number", [0, 4000, 9999])
def test_what_the_disk_cannot_read_is_restored_and_nothing_beside_it_is_lost(folder, disk, suffix, width, number):
    append(spool := Spool(folder), numbers := [b"%03d\n" % (number % 1000) for number in range(10_000)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob(f"*{suffix}")
    disk.spoil(path, number * width, (number + 1) * width)
    spool = Spool(folder)
    spool.cut(10_000)
    for first, last in ((5000, 10_000), (0, 5000), (number, 10_000), (0, number + 1), (0, 10_000)):
        with contextlib.suppress(StorageError):
            read(spool, first, last)
        lost = spool.lost(first, last)
        assert sum(end - begin for begin, end in lost) <= 2 * 64
        for begin, end in lost:
            with spool.restoring(begin) as part:
                append(part, numbers[begin:end])
        assert read(spool, first, last) == b"".join(numbers[first:last])
    assert append(spool, [b"next\n"]) == (10_000, 10_001)
    assert read(spool, 0, 10_001) == b"".join(numbers) + b"next\n"


def test_a_bad_sector_beside_what_is_restored_stays_a_loss_of_its_own(folder, disk):
    append(spool := Spool(folder), numbers := [b"%03d\n" % (number % 1000) for number in range(10_000)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.data")
    disk.spoil(path, 20_000, 20_004)
    overwrite(path, 0, b"damaged")
    with pytest.raises(StorageError):
        read(spool, 0, 10)
    with spool.restoring(0) as part:
        append(part, numbers[:100])
    assert read(spool, 0, 4096) == b"".join(numbers[:4096])
    with pytest.raises(StorageError):
        read(spool, 0, 10_000)
    with spool.restoring(4000) as part:
        append(part, numbers[4000:7000])
    assert read(spool, 0, 10_000) == b"".join(numbers)


def test_a_segment_that_goes_with_a_cut_is_gone_before_the_next_records_count(folder, monkeypatch):
    spool = Spool(folder, segment_bytes=4)
    append(spool, RECORDS)
    spool.sync()
    spool.cut(1)
    synced = []
    monkeypatch.setattr("lc_events.datasets.spool.sync_folder", synced.append)
    append(spool, [b"other\n"])
    spool.sync()
    assert folder in synced


def test_the_files_of_one_segment_under_the_name_of_another_are_no_records_of_it(folder):
    spool = Spool(folder, segment_bytes=4)
    for number in range(8):
        append(spool, [b"%03d\n" % number])
    spool.sync()
    spool.commit()
    for suffix in (".data", ".index"):
        one, other = (folder / f"{first:020}{suffix}" for first in (2, 4))
        one.rename(folder / "away")
        other.rename(one)
        (folder / "away").rename(other)
    with pytest.raises(StorageError):
        read(spool, 0, 8)
    assert spool.lost(0, 8) == [(2, 6)]


def test_an_end_within_damage_that_is_not_asked_any_more_stays_damaged_for_who_asks_it(folder):
    append(spool := Spool(folder), numbers := [b"%03d\n" % number for number in range(20)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.index")
    overwrite(path, 9 * ENTRY, bytes(ENTRY))
    with spool.restoring(10) as part:
        append(part, numbers[10:12])
    for first, last in ((5, 20), (0, 20)):
        with pytest.raises(StorageError):
            read(spool, first, last)
        spool.cut(20)
        assert spool.lost(5, 20) == [(5, 10)]
    with spool.restoring(5) as part:
        append(part, numbers[5:10])
    assert read(spool, 0, 20) == b"".join(numbers)


def test_the_files_of_another_datasets_spool_are_no_records_of_this_one(folder):
    append(spool := Spool(folder), RECORDS)
    append(other := Spool(folder.with_name("vans")), RECORDS)
    spool.sync()
    other.sync()
    for path in other.folder.iterdir():
        path.replace(folder / path.name)
    with pytest.raises(StorageError, match="not as written"):
        read(spool, 0, 5)


def test_who_asks_for_damage_gets_to_know_all_of_it(folder):
    append(spool := Spool(folder), [b"%03d\n" % number for number in range(1000)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.data")
    overwrite(path, 400, b"x")
    overwrite(path, 3600, b"x")
    assert spool.lost(0, 1000) == []
    spool.find_damage(0, 1000)
    one, other = spool.lost(0, 1000)
    assert one[0] <= 100 < one[1] <= 200
    assert 800 <= other[0] <= 900 < other[1]


def test_damage_of_any_length_is_noted_as_one(folder):
    append(spool := Spool(folder), [b"%05d\n" % number for number in range(10_000)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.data")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StorageError):
        read(spool, 0, 10_000)
    assert spool.lost(0, 10_000) == [(0, 10_000)]
    assert spool._damaged == {0: [(0, 10_000)]}


records = st.lists(st.binary(max_size=6).map(lambda record: record + b"\n"), max_size=12)


def test_damage_beyond_what_is_read_is_no_ones_but_its_own(folder):
    append(spool := Spool(folder), numbers := [b"%03d\n" % number for number in range(1000)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.index")
    overwrite(path, 600 * ENTRY, bytes(99 * ENTRY))
    assert read(spool, 0, 600) + read(spool, 700, 1000) == b"".join(numbers[:600] + numbers[700:])
    with pytest.raises(StorageError):
        read(spool, 0, 650)
    for each in (spool, Spool(folder)):
        each.cut(1000)
        assert read(each, 100, 500) + read(each, 800, 1000) == b"".join(numbers[100:500] + numbers[800:])
    with spool.restoring(650) as part:
        append(part, numbers[650:])
    with spool.restoring(550) as part:
        append(part, numbers[550:660])
    assert read(spool, 0, 1000) == b"".join(numbers)


def test_a_last_record_that_is_damaged_takes_nothing_along_when_uncommitted_ones_go(folder):
    append(spool := Spool(folder), numbers := [b"%03d\n" % number for number in range(100)])
    append(spool, [b"uncommitted\n"] * 50)
    spool.sync()
    (path,) = folder.glob("*.index")
    before = path.read_bytes()
    overwrite(path, 99 * ENTRY, bytes(ENTRY))
    spool = Spool(folder)
    spool.cut(100)
    assert spool.lost(0, 100) == [(99, 100)]
    assert append(spool, [b"next\n"] * 200) == (100, 300)
    spool.sync()
    spool.commit()
    assert read(spool, 0, 99) + read(spool, 100, 300) == b"".join(numbers[:99]) + b"next\n" * 200
    path.write_bytes(before)
    spool.cut(300)
    assert read(spool, 0, 300) == b"".join(numbers) + b"next\n" * 200


@pytest.mark.parametrize("foreign", [b"\0" * 40, b"abc\n" * 10, b"\n" * 40])
def test_foreign_bytes_are_seen_whatever_newlines_they_hold(folder, foreign):
    append(spool := Spool(folder), numbers := [b"%03d\n" % number for number in range(100)])
    spool.sync()
    spool.commit()
    (path,) = folder.glob("*.data")
    overwrite(path, 200, foreign)
    with pytest.raises(StorageError) as caught:
        read(spool, 0, 100)
    assert caught.value.code == "damaged"
    with spool.restoring(40) as part:
        append(part, numbers[40:70])
    assert read(spool, 0, 100) == b"".join(numbers)


@given(records, st.integers(1, 40), st.data())
def test_any_range_of_any_spool_reads_back(found, segment_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        spool = Spool(Path(name) / "spool", segment_bytes=segment_bytes)
        stream = b"".join(found)
        ends = [sum(map(len, found[: count + 1])) for count in range(len(found))]
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            spool.append(stream[start:end], [at - start for at in ends if start < at <= end])
        assert spool.length == len(found)
        first = data.draw(st.integers(0, len(found)))
        last = data.draw(st.integers(first, len(found)))
        assert read(spool, first, last) == b"".join(found[first:last])


@given(records, records, st.integers(1, 40), st.data())
def test_whatever_a_kill_left_of_an_uncommitted_append_the_committed_records_stay(kept, lost, segment_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "spool"
        spool = Spool(folder, segment_bytes=segment_bytes)
        append(spool, kept)
        spool.sync()
        sizes = {path: path.stat().st_size for path in folder.iterdir()}
        append(spool, lost)
        spool.append(b"begun", [])
        for path in folder.iterdir():
            low = sizes.get(path, 0)
            size = data.draw(st.integers(low, path.stat().st_size))
            os.truncate(path, size)
            if size == 0 and low == 0 and data.draw(st.booleans()):
                path.unlink()
        again = Spool(folder, segment_bytes=segment_bytes)
        again.cut(len(kept))
        assert append(again, [b"next\n"]) == (len(kept), len(kept) + 1)
        assert read(again, 0, len(kept) + 1) == b"".join(kept) + b"next\n"


@settings(max_examples=60)
@given(st.lists(records, max_size=6), st.integers(1, 40), st.data())
def test_whatever_was_lost_restored_and_trimmed_the_records_that_are_still_needed_stay(batches, segment_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "spool"
        spool = Spool(folder, segment_bytes=segment_bytes)
        ranges = [append(spool, batch) for batch in batches]
        spool.sync()
        spool.commit()
        found, below = [record for batch in batches for record in batch], 0
        for _ in range(data.draw(st.integers(1, 3))):
            for path in sorted(folder.iterdir()) if folder.is_dir() else []:
                match data.draw(st.sampled_from(["keep", "keep", "delete", "cut", "zero"])):
                    case "delete":
                        path.unlink()
                    case "cut":
                        os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))
                    case "zero":
                        path.write_bytes(bytes(path.stat().st_size))
            for first, last in ranges:
                with contextlib.suppress(StorageError):
                    read(spool, max(first, min(below, last)), last)
            spool.cut(len(found))
            for first, last in ranges:
                if spool.lost(max(first, below), last):
                    with spool.restoring(first) as part:
                        append(part, found[first:last])
            below = data.draw(st.integers(below, len(found)))
            spool.trim(below)
            assert spool.lost(below, len(found)) == []
            for first in range(below, len(found)):
                assert read(spool, first, len(found)) == b"".join(found[first:])


@settings(max_examples=60)
@given(st.lists(records, min_size=1, max_size=6), st.integers(1, 40), st.data())
def test_wherever_bytes_were_changed_a_read_is_right_or_finds_what_to_restore(batches, segment_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "spool"
        spool = Spool(folder, segment_bytes=segment_bytes)
        ranges = [append(spool, batch) for batch in batches]
        spool.sync()
        spool.commit()
        found = [record for batch in batches for record in batch]
        for path in sorted(folder.iterdir()):
            for _ in range(data.draw(st.integers(0, 2))):
                at = data.draw(st.integers(0, path.stat().st_size))
                overwrite(path, at, data.draw(st.binary(min_size=1, max_size=20)))
        if data.draw(st.booleans()):
            spool = Spool(folder, segment_bytes=segment_bytes)
            spool.cut(len(found))
        for first in range(len(found)):
            for attempt in range(len(found) + 1):
                try:
                    assert read(spool, first, len(found)) == b"".join(found[first:])
                    break
                except StorageError:
                    assert attempt < len(found)
                spool.cut(len(found))
                lost = [each for each in ranges if spool.lost(*each)]
                assert lost
                for begin, end in lost:
                    with spool.restoring(begin) as part:
                        append(part, found[begin:end])
