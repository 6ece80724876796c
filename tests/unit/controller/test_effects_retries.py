"""When an effect that failed is tried again: with growing pauses, and at once when GM sends the job again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import pytest
from support.given import arrive, given, gm
from support.sedna import condition
from support.waiting import eventually

from lc_events.controller.effects import Effects
from lc_events.controller.lanes import LOCAL
from lc_events.controller.world import World
from lc_events.domain.job import JobState
from lc_events.errors import StorageError
from lc_events.runtime.clock import SystemClock
from lc_events.storage.port import WrittenFile

WAITING = condition("Train", "Waiting", "2024-01-01T00:00:00Z")


class Timers:
    """A committer that commits nothing, and whose timers the test lets pass."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.submitted = 0

    def submit(self, _work: object) -> None:
        self.submitted += 1

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.due.append((seconds, callback))

    def pass_up_to(self, seconds: float) -> None:
        """Let all timers go off that take no longer."""
        gone = [entry for entry in self.due if entry[0] <= seconds]
        self.due = [entry for entry in self.due if entry[0] > seconds]
        for _, callback in gone:
            callback()

    @property
    def pauses(self) -> list[float]:
        return [seconds for seconds, _ in self.due if seconds > 0]


class DownStorage:
    """A storage that refuses, and the places that lead to it."""

    def __init__(self) -> None:
        self.attempts = 0
        self.may_go = threading.Event()
        self.may_go.set()

    def lane_of_job(self, _job: JobState) -> str:
        return LOCAL

    def storage(self, _job: JobState, _url: str) -> DownStorage:
        return self

    def make_folder(self, url: str, *, within: str | None = None) -> None:
        """Nothing to make."""

    def write(self, _url: str, _chunks: Iterable[bytes], **_: object) -> WrittenFile:
        self.attempts += 1
        assert self.may_go.wait(10)
        raise StorageError("down", code="unreachable")


class Scene:
    """A job whose train file cannot be written."""

    def __init__(self) -> None:
        self.history = given(gm(WAITING), arrive(10))
        self.world = World()
        self.timers = Timers()
        self.storage = DownStorage()
        self.effects = Effects(
            self.timers, self.world, SystemClock(), locations=self.storage, spooled=lambda *_: iter([])
        )
        self.show()

    def show(self) -> None:
        """The committer has committed the job as it is."""
        self.world.replace({self.history.state.stream: self.history.state})
        self.effects.consider([self.history.state])

    def gm_sends_it_again(self) -> None:
        self.history = self.history.when(gm(WAITING, message_id=f"again-{self.history.state.version}"))
        self.show()

    def has_failed(self, times: int) -> None:
        """Wait until so many attempts have ended, and let the committer take note of it."""
        eventually(lambda: self.timers.submitted == times)
        eventually(lambda: any(seconds == 0 for seconds, _ in self.timers.due))
        self.timers.pass_up_to(0)


@pytest.fixture
def scene():
    found = Scene()
    yield found
    found.effects.stop()


def test_pauses_grow_up_to_a_minute(scene):
    pauses = []
    for attempt in range(1, 10):
        scene.has_failed(attempt)
        pauses += scene.timers.pauses
        scene.timers.pass_up_to(100)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_job_that_gm_sends_again_is_tried_at_once_and_not_twice(scene):
    scene.has_failed(1)
    scene.timers.pass_up_to(1)
    scene.has_failed(2)
    scene.gm_sends_it_again()
    scene.has_failed(3)
    assert scene.timers.pauses == [2, 4]
    scene.timers.pass_up_to(2)
    assert scene.storage.attempts == 3
    scene.timers.pass_up_to(4)
    scene.has_failed(4)


def test_a_message_that_comes_during_an_attempt_has_it_tried_again_at_once(scene):
    scene.has_failed(1)
    scene.storage.may_go.clear()
    scene.timers.pass_up_to(1)
    eventually(lambda: scene.storage.attempts == 2)
    scene.gm_sends_it_again()
    scene.storage.may_go.set()
    scene.has_failed(2)
    scene.has_failed(3)
    assert scene.timers.pauses == [4]
