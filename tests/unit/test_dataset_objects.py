"""Datasets that are objects: counted forward, only what is new is fetched, two of them are never mixed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pytest

from lc_events.datasets import Follower, Grew, ObjectSource, Reset, Spool, Unchanged, Unreadable
from lc_events.datasets.object_source import AHEAD_BYTES
from lc_events.errors import StorageError


class Bucket:
    """One name in a bucket: what lies there, what was fetched, and what happens just before each request."""

    def __init__(self):
        self.data: bytes | None = None
        self.fetched: list[tuple[int, int]] = []
        self.before: list = []
        self.heads = 0

    def put(self, data):
        self.data = data

    def append(self, data):
        self.data = (self.data or b"") + data

    def look_at(self):
        self.heads += 1
        if self.data is None:
            raise StorageError("cannot read s3://b/k: there is no such object", code="missing", missing=True)
        return Pinned(self, len(self.data), etag(self.data))

    def fetch(self, pinned, offset, length):
        if self.before:
            self.before.pop(0)()
        if self.data is None or etag(self.data) != pinned.stamp:
            raise StorageError("cannot read s3://b/k: replaced", code="changed")
        self.fetched.append((offset, length))
        return self.data[offset : offset + length]

    @property
    def bytes_fetched(self):
        return sum(length for _, length in self.fetched)


@dataclass(frozen=True)
class Pinned:
    bucket: Bucket
    size: int
    stamp: str

    def read(self, offset, length):
        return self.bucket.fetch(self, offset, length)


def etag(data):
    return hashlib.md5(data).hexdigest()


class World:
    """A dataset object, its follower, and what a controller would have committed."""

    def __init__(self, folder):
        self.folder = folder
        self.bucket = Bucket()
        self.mark = None
        self.length = 0
        self.now = 0.0
        self.restart()

    def restart(self):
        self.spool = Spool(self.folder / "spool")
        self.spool.cut(self.length)
        self.follower = Follower(
            ObjectSource(self.bucket.look_at),
            url="s3://b/k",
            format="txt",
            mark=self.mark,
            spool=self.spool,
            partial_seconds=60,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def sleep(self, seconds):
        self.now += seconds

    def look(self, *, keep=True):
        look = self.follower.look(keep=keep)
        if isinstance(look, Grew | Reset):
            self.follower.committed(look.mark)
            self.mark = look.mark
            self.length = self.spool.length
        return look

    def records(self, first=0):
        return b"".join(self.spool.read(first, self.spool.length)).splitlines()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def lines(first, last, width=20):
    return b"".join(f"{number:0{width}}\n".encode() for number in range(first, last))


def test_an_object_that_grows_is_counted_and_only_its_tail_is_fetched(world):
    world.bucket.put(lines(0, 100_000))
    assert world.look().mark.rows == 100_000
    world.bucket.fetched.clear()
    world.bucket.append(lines(100_000, 101_000))
    assert world.look().mark.rows == 101_000
    new = 1000 * 21
    assert new <= world.bucket.bytes_fetched <= new + 2 * 4096
    assert len(world.bucket.fetched) == 3
    assert world.records() == lines(0, 101_000).splitlines()


def test_an_object_that_is_the_same_costs_one_head(world):
    world.bucket.put(lines(0, 10))
    world.look()
    world.bucket.fetched.clear()
    world.bucket.heads = 0
    assert isinstance(world.look(), Unchanged)
    assert (world.bucket.heads, world.bucket.fetched) == (1, [])


def test_after_a_restart_no_more_than_a_block_is_read_again(world):
    world.bucket.put(lines(0, 200_000))
    world.look()
    world.bucket.append(lines(200_000, 200_010))
    world.restart()
    world.bucket.fetched.clear()
    assert world.look().batch.rows == (200_000, 200_010)
    assert world.bucket.bytes_fetched < (1 << 20) + 3 * 4096


def test_a_large_object_is_read_ahead_in_few_requests(world):
    size = 40 << 20
    world.bucket.put(lines(0, size // 1024, 1023))
    assert world.look().mark.rows == size // 1024
    assert world.bucket.bytes_fetched == size
    assert len(world.bucket.fetched) <= size // AHEAD_BYTES + 1
    assert max(length for _, length in world.bucket.fetched) == AHEAD_BYTES


def test_an_object_that_is_replaced_by_other_content_is_a_reset(world):
    world.bucket.put(lines(0, 10))
    world.look()
    for replacement in (lines(50, 60), lines(70, 75), lines(80, 120)):
        world.bucket.put(replacement)
        assert isinstance(world.look(), Reset)
        before = world.spool.length
        assert isinstance(world.look(), Grew)
        assert world.records(before) == replacement.splitlines()


def test_the_same_bytes_put_again_are_nothing_new(world, monkeypatch):
    world.bucket.put(lines(0, 10))
    world.look()
    monkeypatch.setitem(globals(), "etag", lambda data: f"another-{len(data)}")
    assert isinstance(world.look(), Unchanged)
    assert world.mark.rows == 10


@pytest.mark.parametrize("at", range(3))
def test_an_object_replaced_between_two_requests_never_mixes_two(world, at):
    world.bucket.put(lines(0, 150_000))
    world.look()
    world.bucket.append(lines(150_000, 150_010))
    other = lines(500_000, 660_000)
    world.bucket.before = [lambda: None] * at + [lambda: world.bucket.put(other)]
    found = world.look()
    while not (isinstance(found, Unchanged)):
        found = world.look()
    records = world.records()
    first_of_other = records.index(lines(500_000, 500_001).rstrip())
    assert records[first_of_other:] == other.splitlines()
    assert records[:first_of_other] in (lines(0, 150_000).splitlines(), lines(0, 150_010).splitlines())
    assert world.mark.rows == 160_000


def test_an_object_that_grows_while_it_is_read_is_read_on(world):
    world.bucket.put(lines(0, 100_000))
    world.bucket.before = [lambda: None, lambda: world.bucket.append(lines(100_000, 100_005))]
    while not isinstance(world.look(), Unchanged):
        pass
    assert world.records() == lines(0, 100_005).splitlines()


def test_an_object_that_is_replaced_all_the_time_is_told_and_tried_again(world):
    world.bucket.put(lines(0, 10))
    world.look()
    world.bucket.before = [lambda n=n: world.bucket.put(lines(0, 11 + n)) for n in range(50)]
    world.bucket.append(lines(10, 11))
    found = world.look()
    assert isinstance(found, Unreadable)
    assert found.code == "changed"
    world.bucket.before = []
    world.bucket.put(lines(0, 20))
    world.look()
    assert world.records() == lines(0, 20).splitlines()


def test_trouble_in_the_middle_takes_nothing_and_is_told_by_its_code(world):
    world.bucket.put(lines(0, 10))
    world.look()

    def broken():
        raise StorageError("cannot read s3://b/k at minio: slow", code="slow")

    world.bucket.append(lines(10, 20))
    world.bucket.before = [lambda: None, broken]
    assert world.look() == Unreadable("slow", "s3://b/k: cannot read s3://b/k at minio: slow")
    assert world.spool.length == 10
    world.look()
    assert world.records() == lines(0, 20).splitlines()


def test_an_object_that_is_not_there_yet_is_missing_and_then_counted(world):
    found = world.look()
    assert isinstance(found, Unreadable)
    assert found.code == "missing"
    world.bucket.put(b"")
    assert isinstance(world.look(), Unchanged)
    world.bucket.put(lines(0, 3))
    assert world.look().mark.rows == 3


def test_a_last_line_without_an_end_counts_once_it_stood_still(world):
    world.bucket.put(b"one\ntwo")
    assert world.look().mark.rows == 1
    assert world.look() == Unchanged(60)
    world.now += 60
    assert world.look().mark.rows == 2
    assert world.records() == [b"one", b"two"]


def test_records_that_were_only_counted_are_fetched_for_a_job_that_needs_them(world):
    world.bucket.put(lines(0, 100))
    assert world.look(keep=False).batch.spooled is None
    batch = world.follower.reread(rows=40, offset=40 * 21, until=world.mark)
    world.follower.committed(world.mark)
    assert batch.rows == (40, 100)
    assert world.records() == lines(40, 100).splitlines()


def test_what_the_spool_lost_is_fetched_again_and_no_more_than_that(world):
    world.bucket.put(lines(0, 100_000))
    world.look()
    world.bucket.append(lines(100_000, 101_000))
    batch = world.look().batch
    for path in (world.folder / "spool").iterdir():
        path.unlink()
    world.bucket.fetched.clear()
    world.follower.restore([batch])
    assert world.records(100_000) == lines(100_000, 101_000).splitlines()
    assert world.bucket.bytes_fetched == 1000 * 21
    assert world.spool.lost(0, 101_000) == [(0, 100_000)]


def test_an_object_that_grew_since_gives_back_what_it_held(world):
    world.bucket.put(lines(0, 100))
    batch = world.look().batch
    for path in (world.folder / "spool").iterdir():
        path.unlink()
    world.bucket.append(lines(100, 200))
    world.follower.restore([batch])
    assert world.look().batch.rows == (100, 200)
    assert world.records() == lines(0, 200).splitlines()


def test_a_reread_looks_at_the_object_as_it_is_now(world):
    world.bucket.put(lines(0, 100))
    world.look(keep=False)
    world.bucket.append(lines(100, 110))
    batch = world.follower.reread(rows=0, offset=0, until=world.mark)
    assert batch.rows == (0, 100)
    world.follower.committed(world.mark)
    world.bucket.put(lines(300, 500))
    with pytest.raises(StorageError) as caught:
        world.follower.reread(rows=0, offset=0, until=world.mark)
    assert caught.value.code == "changed"
