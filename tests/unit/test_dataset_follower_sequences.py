from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lc_events.datasets import Follower, Grew, Mark, Reset, Spool, Unchanged, Unreadable, fingerprint, reading
from lc_events.datasets.records import splitter_for

PARTIAL_SECONDS = 60


class Life:
    """A dataset file that suffers anything, and what a controller has counted of it."""

    def __init__(self, folder, format_name):
        self.path = folder / "data"
        self.path.write_bytes(b"")
        self.folder = folder
        self.format = format_name
        self.now = 0.0
        self.mark = None
        self.length = 0
        self.spooled = b""
        self.epoch = []
        self.batches = []
        self.restart()

    def sleep(self, seconds):
        self.now += seconds

    def restart(self):
        self.spool = Spool(self.folder / "spool", segment_bytes=8)
        self.spool.cut(self.length)
        self.follower = Follower(
            self.path,
            url="/data",
            format=self.format,
            mark=None if self.mark is None else Mark.from_json(self.mark.to_json()),
            spool=self.spool,
            partial_seconds=PARTIAL_SECONDS,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def look(self, *, commit=True, keep=True):
        found = self.follower.look(keep=keep)
        if not commit or isinstance(found, Unchanged | Unreadable):
            return found
        if isinstance(found, Grew):
            assert found.batch.rows == (len(self.epoch), found.mark.rows)
            assert found.batch.rows[0] < found.batch.rows[1]
            if keep:
                assert found.batch.spooled == (self.length, self.length + found.batch.rows[1] - found.batch.rows[0])
                self.spooled += b"".join(self.spool.read(*found.batch.spooled))
                self.batches.append(found.batch)
                self.epoch += [b"".join(self.spool.read(at, at + 1)) for at in range(*found.batch.spooled)]
            else:
                self.epoch += [None] * (found.batch.rows[1] - found.batch.rows[0])
        else:
            self.epoch, self.batches = [], []
        self.follower.committed(found.mark)
        self.mark = found.mark
        self.length = self.spool.length
        return found

    def look_until_nothing_comes(self):
        for _ in range(50):
            found = self.look()
            if not isinstance(found, Grew | Reset) and getattr(found, "again_in", None) != 0:
                return
        raise AssertionError("the follower does not come to an end")

    def change(self, operation, data, where):
        content = self.path.read_bytes()
        at = where * len(content) // 100
        match operation:
            case "append":
                with self.path.open("ab") as file:
                    file.write(data)
            case "truncate":
                os.truncate(self.path, at)
            case "overwrite":
                with self.path.open("r+b") as file:
                    file.seek(at)
                    file.write(data)
            case "rewrite":
                self.path.write_bytes(content[:at] + data)
            case "rename over":
                (self.folder / "new").write_bytes(content[:at] + data)
                (self.folder / "new").replace(self.path)
            case "touch":
                self.path.touch()
            case "delete and come back":
                self.path.unlink()
                self.look()
                self.path.write_bytes(content + data)
            case "restart":
                self.restart()
            case "look":
                self.look()
            case "look, commit fails":
                self.look(commit=False)
            case "look, killed before the commit":
                self.look(commit=False)
                self.restart()
            case "count only":
                self.look(keep=False)
            case "wait":
                self.look_until_nothing_comes()
                self.now += PARTIAL_SECONDS + 1


CHANGES = ["append", "append", "truncate", "overwrite", "rewrite", "rename over", "touch", "delete and come back"]
LOOKS = ["restart", "look", "look", "look, commit fails", "look, killed before the commit"]
PIECES = {"txt": [b"a", b"bc", b"\n", b"d\n", b"e\nf\n"], "csv": [b"a", b",", b"\n", b'"x\ny"', b"c,d\n", b'"z""\n"\n']}


@st.composite
def lives(draw, format_name, more=()):
    data = st.lists(st.sampled_from(PIECES[format_name]), max_size=6).map(b"".join)
    step = st.tuples(st.sampled_from([*CHANGES, *LOOKS, *more]), data, st.integers(0, 100))
    return draw(st.lists(step, max_size=12))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(fingerprint, "BLOCK_BYTES", 8)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 3)


@pytest.mark.parametrize("format_name", ["txt", "csv"])
@settings(max_examples=40)
@given(data=st.data())
def test_each_record_is_counted_once_whatever_happens_to_the_file(format_name, data):
    with tempfile.TemporaryDirectory() as name:
        life = Life(Path(name), format_name)
        for step in data.draw(lives(format_name)):
            life.change(*step)
            assert b"".join(life.spool.read(0, life.length)) == life.spooled
        life.look_until_nothing_comes()
        split = splitter_for(format_name, offset=0).feed(life.path.read_bytes())
        assert len(life.epoch) == split.count
        assert b"".join(life.epoch) == split.data[: split.ends[-1] if split.ends else 0]


@settings(max_examples=40)
@given(lives("txt", more=["wait", "wait"]))
def test_with_lines_cut_by_pauses_every_byte_is_still_counted_once(steps):
    with tempfile.TemporaryDirectory() as name:
        life = Life(Path(name), "txt")
        for step in steps:
            life.change(*step)
        life.look_until_nothing_comes()
        life.now += PARTIAL_SECONDS + 1
        life.look_until_nothing_comes()
        content = life.path.read_bytes()
        assert b"".join(life.epoch).replace(b"\n", b"") == content.replace(b"\n", b"")
        assert len(life.epoch) >= content.count(b"\n")


@pytest.mark.parametrize("format_name", ["txt", "csv"])
@settings(max_examples=40)
@given(data=st.data())
def test_records_that_were_only_counted_can_be_had_later(format_name, data):
    with tempfile.TemporaryDirectory() as name:
        life = Life(Path(name), format_name)
        for step in data.draw(lives(format_name, more=["count only", "count only", "wait"])):
            life.change(*step)
        life.look_until_nothing_comes()
        if life.mark is None:
            return
        batch = life.follower.reread(rows=0, offset=0, until=life.mark)
        first, last = batch.spooled
        records = [b"".join(life.spool.read(at, at + 1)) for at in range(first, last)]
        assert len(records) == len(life.epoch) == life.mark.rows
        assert all(known in (None, record) for known, record in zip(life.epoch, records, strict=True))


@pytest.mark.parametrize("format_name", ["txt", "csv"])
@settings(max_examples=40)
@given(data=st.data())
def test_what_the_spool_lost_of_the_present_file_is_read_again_and_stays_until_it_is_let_go(format_name, data):
    with tempfile.TemporaryDirectory() as name:
        life = Life(Path(name), format_name)
        for step in data.draw(lives(format_name, more=["wait"])):
            life.change(*step)
        life.look_until_nothing_comes()
        for path in sorted((life.folder / "spool").glob("*")):
            match data.draw(st.sampled_from(["keep", "delete", "cut"])):
                case "delete":
                    path.unlink()
                case "cut":
                    os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))
        if data.draw(st.booleans()):
            life.restart()
        life.follower.settle()
        lost = life.spool.lost(0, life.length)
        gone = [batch for batch in life.batches if any(batch.spooled[0] < b and a < batch.spooled[1] for a, b in lost)]
        life.follower.restore(gone)
        for batch in life.batches:
            expected = b"".join(life.epoch[slice(*batch.rows)])
            assert b"".join(life.spool.read(*batch.spooled)) == expected
            assert life.spool.lost(*batch.spooled) == []
        below = data.draw(st.integers(0, life.length))
        life.spool.trim(below)
        life.restart()
        life.change("append", b"g\nh\n", 100)
        life.look_until_nothing_comes()
        for batch in life.batches:
            (first, last), row = batch.spooled, batch.rows[0] - batch.spooled[0]
            first = min(max(first, below), last)
            assert b"".join(life.spool.read(first, last)) == b"".join(life.epoch[first + row : last + row])
