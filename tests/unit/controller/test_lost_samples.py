"""Lost samples are tried again for ever, at the cost of a glance: where they stood is looked up in histories once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.given import arrive, given, gm
from support.sedna import condition, dataset_resource, down
from support.stores import writing

from lc_events.controller.lost_samples import LostSamples
from lc_events.controller.world import World
from lc_events.datasets.follower import Follower
from lc_events.datasets.mark import Grew
from lc_events.datasets.spool import Spool
from lc_events.domain.dataset import DatasetState, receive_dataset_message
from lc_events.runtime.clock import SystemClock

DATASET = "default/dataset/ds"
LINES = [b"%09d\n" % number for number in range(30)]


class Clock(SystemClock):
    """Stands, until the next attempt is due."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Scene:
    """A job took 10 samples of a dataset, then 10 more; `reads` are the looks into its history."""

    def __init__(self, folder) -> None:
        self.file = folder / "ds.txt"
        self.folder = folder / "spool"
        self.spool = Spool(self.folder, segment_bytes=90)
        self.follower = Follower(
            self.file, url="/data/ds.txt", format="txt", mark=None, spool=self.spool, partial_seconds=60
        )
        message = down(dataset_resource(), kind="dataset", name="ds")
        self.dataset = receive_dataset_message(DatasetState(DATASET), message, "2024-01-01T00:00:00Z")[1]
        self.world = World()
        for count in (10, 20):
            self.grow(count)
        history = given(gm(condition("Train", "Waiting", "2024-01-01T00:00:00Z")), arrive(10), arrive(10))
        self.world.replace({history.state.stream: history.state})
        self.needed = list(history.state.needed_of("ds"))
        assert sum(last - first for first, last in self.needed) == 20
        self.journal = writing(folder / "events.db")
        self.journal.record(history.events)
        self.reads: list[str] = []
        with self.journal.rows.datastore.get_connection(commit=False) as connection:
            connection.cursor().sqlite_cursor.connection.set_trace_callback(self.reads.append)
        self.clock = Clock()
        self.samples = LostSamples(self.journal, self.world, self.clock)

    def grow(self, count: int) -> None:
        self.file.write_bytes(b"".join(LINES[:count]))
        look = self.follower.look(keep=True)
        assert isinstance(look, Grew)
        self.follower.committed(look.mark)
        self.became(mark=look.mark.to_json(), records=count, spool_end=self.spool.length)

    def became(self, **fields) -> None:
        self.dataset = replace(self.dataset, **fields)
        self.world.replace({DATASET: self.dataset})

    def attempt(self) -> bool:
        """Restore once more when that is due; whether all is there."""
        pause = self.samples.restore(DATASET, self.spool, self.follower, self.needed)
        self.clock.seconds += pause or 0.0
        return pause is None

    def lose(self, first: int, suffix: str = ".*"):
        """Move a piece of the spool away; returns how to put it back."""
        moved = [(path, path.with_suffix(f"{path.suffix}.away")) for path in self.folder.glob(f"{first:020}{suffix}")]
        assert moved
        for path, away in moved:
            path.rename(away)
        return lambda: [away.rename(path) for path, away in moved]

    def reads_back(self) -> bool:
        return b"".join(self.spool.read(0, 20)) == b"".join(LINES[:20])


@pytest.fixture
def scene(tmp_path):
    found = Scene(tmp_path)
    yield found
    found.journal.close()


def test_samples_that_no_file_holds_any_more_cost_one_look_into_histories(scene):
    put_back = scene.lose(0)
    scene.became(epoch=2)
    assert not scene.attempt()
    looks = len(scene.reads)
    assert looks > 0
    for _ in range(10):
        assert not scene.attempt()
    scene.grow(30)
    assert not scene.attempt()
    assert len(scene.reads) == looks

    put_back()
    assert scene.attempt()
    assert scene.reads_back()


def test_a_file_that_is_away_gives_the_samples_when_it_is_back_without_another_look(scene):
    scene.lose(0)
    away = scene.file.rename(scene.file.with_name("away"))
    for _ in range(5):
        assert not scene.attempt()
    looks = len(scene.reads)
    assert looks > 0
    away.rename(scene.file)

    assert scene.attempt()
    assert scene.reads_back()
    assert len(scene.reads) == looks


def test_when_more_is_lost_histories_are_looked_into_again(scene):
    scene.lose(0)
    away = scene.file.rename(scene.file.with_name("away"))
    assert not scene.attempt()
    looks = len(scene.reads)
    scene.lose(11)
    assert not scene.attempt()
    assert len(scene.reads) == 2 * looks
    away.rename(scene.file)

    assert scene.attempt()
    assert scene.reads_back()


def test_what_was_restored_stays_when_all_that_nobody_needs_is_let_go(scene):
    scene.needed = [(11, 20)]
    scene.lose(11, ".data")
    assert scene.attempt()
    looks = len(scene.reads)
    scene.spool.trim(11)

    assert scene.spool.lost(11, 20) == []
    assert scene.attempt()
    assert len(scene.reads) == looks > 0
