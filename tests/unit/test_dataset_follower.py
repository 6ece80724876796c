from __future__ import annotations

import hashlib
import os
import stat

import pytest

from lc_events.datasets import (
    Follower,
    Grew,
    LocalSource,
    Mark,
    Reset,
    SourceStat,
    Spool,
    Unchanged,
    Unreadable,
    header_bytes,
)
from lc_events.datasets.follower import FOLLOW_SECONDS
from lc_events.datasets.stillness import COARSE_GRAIN_SECONDS, SETTLE_SECONDS
from lc_events.errors import StorageError


class Clock:
    """Time that passes only while somebody sleeps; `during` is what the world does meanwhile."""

    def __init__(self):
        self.now = 1000.0
        self.during = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.during:
            self.during.pop(0)()


class CountingSource(LocalSource):
    """A local file that knows how many bytes were read of it; `after_read` is what the world does then."""

    def __init__(self, path):
        super().__init__(path)
        self.bytes_read = 0
        self.after_read = lambda: None

    def open(self):
        opened = super().open()
        read = opened.read

        def counted(offset, length):
            data = read(offset, length)
            self.bytes_read += len(data)
            self.after_read()
            return data

        opened.read = counted
        return opened


class World:
    """One dataset file, its follower, and what a controller would have committed."""

    def __init__(self, folder, format_name="txt"):
        self.path = folder / f"data.{format_name}"
        self.format = format_name
        self.folder = folder
        self.clock = Clock()
        self.mark = None
        self.length = 0
        self.restart()

    def restart(self):
        """A new process goes on from what was committed."""
        self.spool = Spool(self.folder / "spool")
        self.spool.cut(self.length)
        self.source = CountingSource(self.path)
        self.follower = Follower(
            self.source,
            url="/data",
            format=self.format,
            mark=None if self.mark is None else Mark.from_json(self.mark.to_json()),
            spool=self.spool,
            partial_seconds=60,
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    def look(self, *, keep=True, commit=True):
        found = self.follower.look(keep=keep)
        if commit and isinstance(found, Grew | Reset):
            self.follower.committed(found.mark)
            self.mark = found.mark
            self.length = self.spool.length
        return found

    def write(self, data):
        self.path.write_bytes(data)

    def append(self, data):
        with self.path.open("ab") as file:
            file.write(data)

    def records(self, batch):
        """Spooled records of a batch."""
        return b"".join(self.spool.read(*batch.spooled))

    def rest(self):
        """Let the file grow old, so that its time stamps tell everything."""
        os.utime(self.path, ns=(1_600_000_000_000_000_001, 1_600_000_000_000_000_001))


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def table(tmp_path):
    return World(tmp_path, "csv")


def test_what_is_appended_comes_once(world):
    world.write(b"a\nb\n")
    first = world.look()
    assert (first.batch.rows, first.batch.bytes, first.batch.spooled) == ((0, 2), (0, 4), (0, 2))
    assert world.records(first.batch) == b"a\nb\n"
    assert isinstance(world.look(), Unchanged)
    world.append(b"c\r\n")
    second = world.look()
    assert (second.batch.rows, second.batch.bytes, second.batch.spooled) == ((2, 3), (4, 7), (2, 3))
    assert world.records(second.batch) == b"c\n"


def test_a_dataset_that_is_not_there_yet_is_unreadable_until_it_comes(world):
    for _ in range(2):
        assert world.look() == Unreadable("missing", f"/data: cannot read {world.path}: No such file or directory")
    world.write(b"a\n")
    assert world.look().batch.rows == (0, 1)


def test_appends_that_follow_each_other_within_20_ms_are_one_batch(world):
    world.write(b"a\n")
    world.clock.during = [lambda: world.append(b"b\n"), lambda: world.append(b"c\nd")]
    assert world.look().batch.rows == (0, 3)


def test_a_file_that_never_stands_still_is_followed_for_half_a_second(world):
    world.write(b"a\n")
    world.clock.during = [lambda: world.append(b"b\n")] * 1000
    begin = world.clock()
    found = world.look()
    assert found.more
    assert found.batch.rows == (0, 1 + FOLLOW_SECONDS / SETTLE_SECONDS)
    assert world.clock() - begin == pytest.approx(FOLLOW_SECONDS)
    world.clock.during = []
    assert world.look().batch.rows[0] == found.batch.rows[1]


def test_what_was_not_committed_comes_again(world):
    world.write(b"a\n")
    first = world.look(commit=False)
    assert world.look(commit=False) == first
    world.append(b"b\n")
    again = world.look()
    assert (again.batch.rows, again.batch.spooled) == ((0, 2), (0, 2))
    assert world.records(again.batch) == b"a\nb\n"


def test_only_the_outstanding_observation_can_be_committed(world):
    world.write(b"a\n")
    first = world.look()
    with pytest.raises(ValueError, match="outstanding"):
        world.follower.committed(first.mark)


def test_a_restart_reads_no_more_than_the_last_block_again(world):
    world.write(b"line\n" * 1_000_000)
    while world.look().again_in == 0:
        pass
    world.rest()
    world.look()
    world.append(b"x\n")
    world.look()
    world.restart()
    assert isinstance(world.look(), Unchanged)
    assert world.source.bytes_read <= 1_100_000
    world.append(b"more\n")
    assert world.look().batch.rows == (1_000_001, 1_000_002)
    assert world.source.bytes_read <= 2_200_000


def test_a_partial_last_line_counts_once_it_stood_still(world):
    world.write(b"a\nb")
    first = world.look()
    assert first.batch.rows == (0, 1)
    assert first.again_in == pytest.approx(60 - SETTLE_SECONDS)
    world.clock.now += 30
    found = world.look()
    assert isinstance(found, Unchanged)
    assert found.again_in == pytest.approx(30 - SETTLE_SECONDS)
    world.clock.now += found.again_in
    partial = world.look()
    assert (partial.batch.rows, partial.batch.bytes) == ((1, 2), (2, 3))
    assert world.records(partial.batch) == b"b\n"
    assert world.look().again_in is None


def test_a_partial_line_that_grows_begins_to_wait_again(world):
    world.write(b"a")
    world.look()
    world.clock.now += 59
    world.append(b"b")
    assert world.look().again_in == pytest.approx(60 - SETTLE_SECONDS)
    world.append(b"c\n")
    assert world.records(world.look().batch) == b"abc\n"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_line_end_that_comes_late_is_no_record(world, line_end, restart):
    world.write(b"a")
    world.look()
    world.clock.now += 61
    assert world.look().batch.rows == (0, 1)
    if restart:
        world.restart()
    world.append(line_end)
    assert isinstance(world.look(), Unchanged)
    world.append(b"b\n")
    found = world.look()
    assert (found.batch.rows, found.batch.bytes) == ((1, 2), (1 + len(line_end), 3 + len(line_end)))
    assert world.records(found.batch) == b"b\n"


@pytest.mark.parametrize("restart", [False, True])
def test_a_line_that_goes_on_after_it_counted_is_a_second_record(world, restart):
    world.write(b"ab")
    world.look()
    world.clock.now += 61
    world.look()
    if restart:
        world.restart()
    world.append(b"cd\ne\n")
    found = world.look()
    assert world.records(found.batch) == b"cd\ne\n"
    assert found.mark.splits == (2,)
    batch = world.follower.reread(rows=0, offset=0, until=found.mark)
    assert world.records(batch) == b"ab\ncd\ne\n"


def test_a_file_of_too_many_cut_lines_waits_for_their_ends(world):
    world.write(b"x")
    for _ in range(70):
        world.look()
        world.clock.now += 61
        world.look()
        world.append(b"x")
    world.look()
    assert world.mark.rows == 65
    world.append(b"\n")
    assert world.look().batch.rows == (65, 66)
    assert len(world.mark.splits) == 65


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("present", "reason"),
    [
        (b"", "shrank to 0 bytes"),
        (b"1\n", "shrank to 2 bytes"),
        (b"1\n2\nx\n", "no longer the same"),
        (b"x\n2\n3\n4\n", "no longer the same"),
        (b"1\n2\nx\n4\n", "no longer the same"),
    ],
)
@pytest.mark.parametrize("by_rename", [False, True])
def test_a_file_whose_counted_part_changed_is_a_reset(world, present, reason, by_rename, restart):
    world.write(b"1\n2\n3\n")
    world.look()
    if restart:
        world.restart()
    if by_rename:
        (world.folder / "new").write_bytes(present)
        (world.folder / "new").replace(world.path)
    else:
        world.write(present)
    found = world.look()
    assert isinstance(found, Reset)
    assert reason in found.reason
    found = world.look()
    rows = present.count(b"\n")
    assert isinstance(found, Grew if rows else Unchanged)
    if rows:
        assert (found.batch.rows, found.batch.spooled) == ((0, rows), (3, 3 + rows))
        assert world.records(found.batch) == present


def test_a_reset_that_was_not_committed_comes_again(world):
    world.write(b"1\n2\n")
    world.look()
    world.write(b"x\n")
    assert world.look(commit=False) == world.look(commit=False)
    world.write(b"1\n2\n3\n")
    assert world.look().batch.rows == (2, 3)


def test_a_file_rewritten_with_the_same_content_is_no_reset(world):
    world.write(b"1\n2\n")
    world.look()
    (world.folder / "new").write_bytes(b"1\n2\n3\n")
    (world.folder / "new").replace(world.path)
    assert world.look().batch.rows == (2, 3)
    world.path.unlink()
    assert isinstance(world.look(), Unreadable)
    world.write(b"1\n2\n3\n")
    assert isinstance(world.look(), Unchanged)
    world.path.touch()
    assert isinstance(world.look(), Unchanged)


def test_an_editor_that_empties_a_file_and_writes_it_anew_is_waited_for(world):
    world.write(b"1\n2\n")
    world.look()
    world.write(b"")
    world.clock.during = [lambda: world.write(b"1\n2\n3\n")]
    assert world.look().batch.rows == (2, 3)
    world.path.unlink()
    world.clock.during = [lambda: world.write(b"1\n2\n3\n4\n")]
    assert world.look().batch.rows == (3, 4)


def test_a_change_that_keeps_size_and_time_is_found(world):
    world.write(b"1\n2\n")
    world.look()
    before = world.path.stat()
    world.write(b"1\nx\n")
    os.utime(world.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert isinstance(world.look(), Reset)


def test_a_header_that_changed_in_a_file_that_grew_is_found(table):
    table.write(b"one\n" + b"line\n" * 5000)
    table.look()
    table.write(b"two\n" + b"line\n" * 5001)
    assert isinstance(table.look(), Reset)


def test_a_change_deep_in_a_large_file_is_found(world):
    data = bytearray(b"line\n" * 1_000_000)
    world.write(data)
    while world.look().again_in == 0:
        pass
    data[2_000_001:2_000_002] = b"X"
    world.write(data)
    assert isinstance(world.look(), Reset)


def test_a_partial_line_that_was_rewritten_is_read_anew(world):
    world.write(b"1\nabc")
    world.look()
    world.write(b"1\nxyz\n")
    assert world.records(world.look().batch) == b"xyz\n"
    world.append(b"partial")
    world.look()
    world.write(b"1\nxyz\n")
    assert isinstance(world.look(), Unchanged)
    world.append(b"2\n")
    assert world.records(world.look().batch) == b"2\n"


def test_a_link_that_is_moved_is_followed(world):
    (world.folder / "one").write_bytes(b"1\n2\n")
    (world.folder / "two").write_bytes(b"1\n2\n3\n")
    (world.folder / "three").write_bytes(b"x\n2\n3\n")
    world.path.symlink_to("one")
    world.look()
    for target, kind in (("two", Grew), ("three", Reset)):
        world.path.unlink()
        world.path.symlink_to(target)
        assert isinstance(world.look(), kind)


def test_a_folder_or_pipe_in_its_place_is_unreadable(world):
    world.path.mkdir()
    assert world.look().code == "not_a_file"
    world.path.rmdir()
    os.mkfifo(world.path)
    assert world.look().code == "not_a_file"
    world.path.unlink()
    world.write(b"a\n")
    assert world.look().batch.rows == (0, 1)


def test_a_file_that_may_not_be_read_is_unreadable_until_repaired(world):
    world.write(b"a\n")
    world.path.chmod(0)
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        assert world.look().code == "denied"
    finally:
        os.seteuid(user)
    world.path.chmod(stat.S_IRUSR)
    assert world.look().batch.rows == (0, 1)


def test_counting_without_a_job_spools_nothing(world):
    world.write(b"a\nb\nc")
    found = world.look(keep=False)
    assert (found.batch.rows, found.batch.spooled) == ((0, 2), None)
    assert world.spool.length == 0
    world.append(b"c\nd\n")
    assert world.records(world.look(keep=True).batch) == b"cc\nd\n"


@pytest.mark.parametrize("format_name", ["txt", "csv"])
def test_a_job_that_came_later_gets_the_records_that_were_only_counted(tmp_path, format_name):
    world = World(tmp_path, format_name)
    header = b'h,"1\n2"\r\n' if format_name == "csv" else b""
    world.write(b"\xef\xbb\xbf" + header + b"a\r\nb\nc")
    first = world.look(keep=False)
    world.clock.now += 61
    second = world.look(keep=False)
    world.append(b"\nd\ne")
    third = world.look(keep=False)
    assert third.mark.rows == 4
    for rows, offset, expected in (
        (0, 0, b"a\nb\nc\nd\n"),
        (0, first.batch.bytes[0], b"a\nb\nc\nd\n"),
        (2, first.mark.offset, b"c\nd\n"),
        (3, second.mark.offset, b"d\n"),
        (4, third.mark.offset, b""),
    ):
        batch = world.follower.reread(rows=rows, offset=offset, until=third.mark)
        assert batch.rows == (rows, 4)
        assert batch.header == third.mark.header
        assert world.records(batch) == expected
    world.follower.committed(third.mark)
    length = world.spool.length
    world.append(b"f\n")
    found = world.look()
    assert world.records(found.batch) == b"ef\n"
    assert found.batch.spooled == (length, length + 1)


def test_a_file_that_changed_cannot_be_read_again(world):
    world.write(b"a\nb\n")
    mark = world.look(keep=False).mark
    world.write(b"a\nx\n")
    for rows, offset in ((0, 0), (1, 2)):
        with pytest.raises(StorageError) as caught:
            world.follower.reread(rows=rows, offset=offset, until=mark)
        assert caught.value.code == "changed"
    assert isinstance(world.look(), Reset)
    assert world.spool.length == 0
    with pytest.raises(ValueError, match="present mark"):
        world.follower.reread(rows=0, offset=0, until=mark)


def test_a_csv_header_comes_with_the_records_and_a_new_one_is_a_reset(table):
    table.write(b"\xef\xbb\xbfname,gr\xf6\xdfe\r\n")
    assert isinstance(table.look(), Unchanged)
    table.append(b'"a\n1",2\n')
    first = table.look()
    assert header_bytes(first.batch.header) == b"name,gr\xf6\xdfe"
    assert first.batch.bytes == (15, 23)
    assert table.records(first.batch) == b'"a\n1",2\n'
    table.write(b"other\n" + b"x\n" * 20)
    assert isinstance(table.look(), Reset)
    assert table.look().batch.header == "other"


def test_an_unfinished_header_is_not_taken_for_one(table):
    table.write(b"na")
    table.look()
    table.clock.now += 61
    assert table.look() == Unchanged(None)
    table.append(b"me\nx\n")
    assert table.look().batch.header == "name"


def test_a_missing_quote_is_said_with_its_place_and_repaired_by_its_coming(table):
    table.write(b'h\na\nb,"c\n')
    first = table.look()
    assert first.batch.rows == (0, 1)
    table.clock.now += first.again_in + 1
    for _ in range(2):
        found = table.look()
        assert found.code == "csv_quote"
        assert "begins at byte 6" in found.error
    table.append(b'd"\ne\n')
    assert table.records(table.look().batch) == b'b,"c\nd"\ne\n'


@pytest.mark.parametrize("restart", [False, True])
def test_an_endless_quote_keeps_what_came_before_and_can_be_repaired(table, restart):
    table.write(b'h\na\nb,"c\n' + b"d\n" * 600_000)
    first = table.look()
    assert (first.batch.rows, first.more) == ((0, 1), True)
    if restart:
        table.restart()
    for _ in range(2):
        found = table.look()
        assert found.code == "csv_quote"
        assert "begins at byte 6 " in found.error
    table.write(b'h\na\nb,"c"\nd\n')
    assert table.records(table.look().batch) == b'b,"c"\nd\n'


def test_lines_of_megabytes_are_one_record_each(world):
    line = b"0123456789" * 500_000
    world.write(line)
    while world.look().again_in == 0:
        pass
    world.append(line + b"\n" + line + b"\n")
    records = b""
    while True:
        found = world.look()
        if isinstance(found, Grew):
            records += world.records(found.batch)
        if found.again_in != 0:
            break
    assert records == line + line + b"\n" + line + b"\n"
    assert world.mark.rows == 2


def test_trouble_of_the_spool_is_no_trouble_of_the_dataset(world):
    world.write(b"a\n")
    (world.folder / "spool").write_bytes(b"in the way")
    with pytest.raises(StorageError, match="spool"):
        world.look()
    (world.folder / "spool").unlink()
    assert world.records(world.look().batch) == b"a\n"


def test_a_spool_that_was_deleted_goes_on(world):
    world.write(b"a\n")
    world.look()
    for path in (world.folder / "spool").iterdir():
        path.unlink()
    world.append(b"b\n")
    with pytest.raises(StorageError):
        world.look()
    found = world.look()
    assert (found.batch.rows, found.batch.spooled) == ((1, 2), (1, 2))
    assert world.records(found.batch) == b"b\n"


def test_what_the_spool_lost_is_read_again_while_the_file_holds_it(table):
    table.write(b"\xef\xbb\xbfn,m\r\n1,2\r\n")
    first = table.look().batch
    table.append(b'"3\n",4\r\n5,6\r\n')
    second = table.look().batch
    for path in (table.folder / "spool").iterdir():
        path.unlink()
    table.append(b"7,8\n")
    table.follower.restore([second, first])
    assert table.records(first) + table.records(second) == b'1,2\n"3\n",4\n5,6\n'
    assert table.records(table.look().batch) == b"7,8\n"


def test_nothing_is_put_into_the_spool_of_a_file_that_is_another_one(world):
    world.write(b"a\nb\n")
    batch = world.look().batch
    for path in (world.folder / "spool").iterdir():
        path.unlink()
    world.write(b"a\nc\n")
    with pytest.raises(StorageError) as caught:
        world.follower.restore([batch])
    assert caught.value.code == "changed"
    assert world.spool.lost(0, 2) == [(0, 2)]
    assert list((world.folder / "spool").iterdir()) == []


@pytest.mark.parametrize("grown", [b"", b"b\n"])
def test_nothing_is_put_into_the_spool_of_a_file_that_is_overwritten_while_it_is_read_again(world, grown):
    size = 3_000_000
    world.write(b"a\n" * (size // 2))
    batch = world.look().batch
    for path in (world.folder / "spool").iterdir():
        path.unlink()
    world.append(grown)

    def overwrite():
        if list((world.folder / "spool/restored").glob("*.data")) and b"X" not in world.path.read_bytes():
            with world.path.open("r+b") as file:
                file.seek(size - 2)
                file.write(b"X")

    world.source.after_read = overwrite
    with pytest.raises(StorageError) as caught:
        world.follower.restore([batch])
    assert world.path.read_bytes().endswith(b"X\n" + grown)
    assert caught.value.code == "changed"
    assert world.spool.lost(0, size // 2) == [(0, size // 2)]


def test_another_format_is_unreadable(tmp_path):
    world = World(tmp_path, "parquet")
    world.write(b"PAR1")
    assert world.look().code == "unsupported"


def test_a_mark_survives_json(world):
    world.write(b"a\nb")
    world.look()
    world.clock.now += 61
    mark = world.look().mark
    assert Mark.from_json(mark.to_json() | {"later": 1}) == mark
    assert Mark.from_json({}) == Mark()
    with pytest.raises(ValueError, match="rows"):
        Mark.from_json({"rows": "2"})


class Memory:
    """An object that is replaced whole, as in S3."""

    def __init__(self, data):
        self.put(data)

    def put(self, data):
        self.data = data
        self.stamp = hashlib.sha256(data).hexdigest()

    def stat(self):
        return SourceStat(len(self.data), "", self.stamp, None)

    def open(self):
        return self

    def read(self, offset, length):
        return self.data[offset : offset + length]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class CoarseFile(Memory):
    """A file whose time stamps cannot tell two writes within one moment apart."""

    def put(self, data):
        self.data = data

    def stat(self):
        return SourceStat(len(self.data), "1", "then", self.changed_ns)


def test_two_writes_within_one_moment_of_the_file_s_clock_are_told_apart(tmp_path):
    clock = Clock()
    source = CoarseFile(b"a\nb\n")
    source.changed_ns = 5_000_000_000
    now = 5_500_000_000
    follower = Follower(
        source,
        url="/data",
        format="txt",
        mark=None,
        spool=Spool(tmp_path),
        partial_seconds=60,
        clock=clock,
        sleep=clock.sleep,
        wall_ns=lambda: now,
    )
    found = follower.look(keep=True)
    assert found.again_in == pytest.approx(COARSE_GRAIN_SECONDS - 0.5)
    follower.committed(found.mark)
    source.put(b"a\nx\n")
    now += int(found.again_in * 1e9) + 1
    assert isinstance(follower.look(keep=True), Reset)


def test_an_object_is_followed_without_waiting(tmp_path):
    source = Memory(b"a\n")
    clock = Clock()
    follower = Follower(
        source,
        url="s3://b/k",
        format="txt",
        mark=None,
        spool=Spool(tmp_path),
        partial_seconds=60,
        clock=clock,
        sleep=clock.sleep,
    )
    for data, rows in ((b"a\nb\n", (0, 2)), (b"a\nb\nc\n", (2, 3))):
        source.put(data)
        found = follower.look(keep=True)
        assert found.batch.rows == rows
        follower.committed(found.mark)
    source.put(b"x\nb\nc\nd\n")
    assert isinstance(follower.look(keep=True), Reset)
    assert clock() == 1000
