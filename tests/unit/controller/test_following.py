"""Looks at datasets whose spool is in trouble: said once, tried again with growing pauses, until it works."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from support.given import given, gm
from support.sedna import condition, dataset_resource, down
from support.stores import writing
from support.waiting import eventually

from lc_events.controller.following import Following
from lc_events.controller.lanes import LOCAL
from lc_events.controller.observations import Observed
from lc_events.controller.world import World
from lc_events.datasets.source import LocalSource
from lc_events.domain.dataset import DatasetState, receive_dataset_message
from lc_events.runtime.clock import SystemClock

PAUSES = [1, 2, 4, 8, 16, 32, 60, 60]


class Time(SystemClock):
    """A clock that stands until a pause is passed over, and the committer that keeps the pauses."""

    def __init__(self) -> None:
        self.now_is = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.looks: list[object] = []

    def monotonic(self) -> float:
        return self.now_is

    def submit(self, work: object) -> None:
        self.looks.append(work)

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.due.append((seconds, callback))

    def next_pause(self) -> float:
        """Wait until something is to be done later, let that time pass, and say how long it was."""
        eventually(lambda: self.due)
        seconds, callback = self.due.pop()
        self.now_is += seconds
        callback()
        return seconds


class Places:
    """Where datasets lie."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, url: str) -> Path:
        return self._root / url.lstrip("/")

    def source(self, _stream: str, url: str) -> LocalSource:
        return LocalSource(self.path(url))

    def lane_of_dataset(self, _stream: str, _url: str) -> str:
        return LOCAL


class Scene:
    """Two datasets of two records each, of which a job learns from the first."""

    def __init__(self, folder: Path) -> None:
        self.spool = folder / "spool"
        self.time = Time()
        self.world = World()
        job = given(gm(condition("Train", "Waiting", "2024-01-01T00:00:00Z"))).state
        self.datasets = [self._inserted(name) for name in ("ds", "other")]
        for state in (job, *self.datasets):
            self.world.replace({state.stream: state})
        (folder / "data").mkdir()
        for name in ("ds", "other"):
            (folder / f"data/{name}.txt").write_text("a\nb\n")
        self.journal = writing(folder / "events.db")
        self.following = Following(
            self.time,  # type: ignore[arg-type]
            self.world,
            self.time,
            journal=self.journal,
            folder=self.spool,
            locations=Places(folder),  # type: ignore[arg-type]
            period=3600,
            zone="UTC",
            watch=lambda _: None,
            unwatch=lambda _: None,
        )

    @staticmethod
    def _inserted(name: str, file: str = "") -> DatasetState:
        resource = dataset_resource(name=name, url=f"/data/{file or name}.txt")
        message = down(resource, kind="dataset", name=name)
        return receive_dataset_message(DatasetState(f"default/dataset/{name}"), message, "2024-01-01T00:00:00Z")[1]

    def moves(self, name: str, file: str) -> None:
        """GM has a dataset lie in another file."""
        state = self._inserted(name, file)
        self.world.replace({state.stream: state})
        self.following.consider([state])

    def pauses(self, count: int) -> list[float]:
        return [self.time.next_pause() for _ in range(count)]


@pytest.fixture
def scene(tmp_path):
    found = Scene(tmp_path)
    yield found
    found.following.stop()
    found.journal.close()


def open_below(folder: Path) -> list[str]:
    """Files in a folder that this process has open."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return [link for link in links if link.startswith(str(folder))]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "spool" in record.getMessage()]


def test_a_look_that_its_spool_hinders_is_said_once_and_made_again_with_growing_pauses(scene, caplog):
    caplog.set_level(logging.WARNING)
    place = scene.spool / "default/ds"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"in the way")
    scene.following.consider(scene.datasets[:1])
    assert scene.pauses(7) == PAUSES[:7]
    eventually(lambda: scene.time.due)
    assert len(said(caplog)) == 1
    place.unlink()
    assert scene.time.next_pause() == PAUSES[7]
    eventually(lambda: scene.time.looks)
    assert isinstance(scene.time.looks[0], Observed)
    assert said(caplog)[1:] == ["default/dataset/ds: its spool works again"]


def begin_in_trouble(scene: Scene) -> None:
    """A look finds that its spool does not work; when its pause begins, the spool does."""
    place = scene.spool / "default/ds"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"in the way")
    scene.following.consider(scene.datasets[:1])
    eventually(lambda: scene.time.due)
    place.unlink()


def test_a_notice_does_not_cut_the_pause_of_a_spool_in_trouble_short(scene, tmp_path):
    begin_in_trouble(scene)
    for _ in range(3):
        scene.following.noticed(tmp_path / "data/ds.txt")
    # looks begin in the order they were asked for, and what has begun is waited for
    scene.following.consider(scene.datasets[1:])
    eventually(lambda: scene.time.looks)
    scene.following.stop()
    assert len(scene.time.looks) == 1, "that of the other dataset alone"


def test_a_notice_during_the_pause_of_a_spool_in_trouble_leaves_the_look_after_it(scene, tmp_path):
    begin_in_trouble(scene)
    scene.following.noticed(tmp_path / "data/ds.txt")
    assert scene.time.next_pause() == 1
    eventually(lambda: scene.time.looks)


def test_a_spool_that_cannot_be_opened_keeps_nobody_else_from_beginning(scene, caplog):
    caplog.set_level(logging.WARNING)
    place = scene.spool / "default/ds" / f"{'1' * 249}.index"  # too long a name to be moved aside
    place.mkdir(parents=True)
    scene.following.consider(scene.datasets)
    eventually(lambda: scene.time.looks)
    assert scene.pauses(7) == PAUSES[:7]
    assert len(said(caplog)) == 1
    place.rmdir()
    assert scene.time.next_pause() == PAUSES[7]
    eventually(lambda: len(scene.time.looks) == 2)


def test_one_look_at_a_time_writes_into_a_spool_when_the_dataset_moves_to_another_file(scene, tmp_path):
    scene.following.consider(scene.datasets[:1])
    eventually(lambda: scene.time.looks)
    scene.moves("ds", "other")
    scene.moves("ds", "third")
    (tmp_path / "data/third.txt").write_text("c\n")
    scene.following.noticed(tmp_path / "data/third.txt")
    assert len(list((scene.spool / "default/ds").glob("*.data"))) == 1
    assert (scene.spool / f"default/ds/{0:020}.data").read_bytes() == b"a\nb\n"
    scene.time.looks[0].failed(OSError("the store has no space"))
    assert scene.time.next_pause() == 0
    eventually(lambda: len(scene.time.looks) == 2)
    assert (scene.spool / f"default/ds/{0:020}.data").read_bytes() == b"c\n"


def test_a_dataset_that_goes_amid_a_line_leaves_no_file_open(scene, tmp_path):
    (tmp_path / "data/ds.txt").write_text("no end of line yet")
    scene.following.consider(scene.datasets[:1])
    eventually(lambda: scene.time.looks)
    assert open_below(scene.spool) != []
    scene.moves("ds", "other")
    scene.time.looks[0].failed(OSError("the store has no space"))
    assert open_below(scene.spool) == []
