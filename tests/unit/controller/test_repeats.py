from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable

import pytest
from support.given import History, confirmed, given, gm, reported
from support.sedna import condition

from lc_events.controller.repeats import Repeats
from lc_events.controller.world import World
from lc_events.runtime.clock import SystemClock

STREAM = "default/lifelonglearningjob/job1"
BEGINNING = 100.5


class Running(SystemClock):
    """Time that passes when it is told to, and what is to be done meanwhile; a committer's part in that."""

    def __init__(self) -> None:
        self.seconds = BEGINNING
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        return self.seconds

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.seconds + seconds, next(self._order), callback))

    def run(self, seconds: float) -> None:
        end = self.seconds + seconds
        while self._heap and self._heap[0][0] <= end:
            self.seconds, _, callback = heapq.heappop(self._heap)
            callback()
        self.seconds = end


class Repeating:
    """A job, and which of its versions were sent again, how many seconds after the beginning.

    It begins amid a second of the clock, and what is due is sent again when a second ends: half a second later.
    """

    def __init__(self) -> None:
        self.time = Running()
        self.world = World()
        self.sent: list[tuple[float, list[int]]] = []
        self.repeats = Repeats(self.time, self.world, self.time, self._note)  # type: ignore[arg-type]
        self.history = given(gm(condition("Train", "Running")))

    def does(self, *commands) -> History:
        self.history = self.history.when(*commands)
        self.world.replace({STREAM: self.history.state})
        self.repeats.consider([self.history.state])
        return self.history

    def _note(self, stream: str, versions: Iterable[int]) -> None:
        assert stream == STREAM
        self.sent.append((self.time.seconds - BEGINNING, list(versions)))


@pytest.fixture
def job() -> Repeating:
    return Repeating()


def test_a_report_is_sent_again_with_growing_pauses_until_it_is_confirmed(job):
    job.does(reported())
    job.time.run(200)
    assert job.sent == [(10.5, [2]), (30.5, [2]), (70.5, [2]), (150.5, [2])]
    job.does(confirmed(2))
    job.time.run(10_000)
    assert len(job.sent) == 4


def test_the_longest_pause_is_ten_minutes(job):
    job.does(reported())
    job.time.run(7 * 24 * 3600)
    pauses = [b - a for (a, _), (b, _) in itertools.pairwise(job.sent)]
    assert pauses == [20, 40, 80, 160, 320, *[600] * 1006]


def test_what_has_just_gone_out_is_not_sent_again_with_what_is_older(job):
    job.does(reported())
    job.time.run(8)
    job.does(*[reported(results=[{"n": n}]) for n in range(3)])
    job.time.run(5)
    assert job.sent == [(10.5, [2])]
    job.time.run(7)
    assert job.sent[1:] == [(18.5, [3, 4, 5])]


def test_what_is_new_does_not_wait_for_the_end_of_an_old_pause(job):
    job.does(reported())
    job.time.run(1000)
    before = len(job.sent)
    job.does(reported(status="running"))
    job.time.run(12)
    assert [versions for _, versions in job.sent[before:]] == [[3]]


def test_a_new_connection_repeats_all_and_begins_anew(job):
    job.does(reported(), reported(status="running"))
    job.time.run(5)
    job.repeats.connected()
    job.time.run(0)
    assert job.sent == [(5, [2, 3])]
    job.time.run(12)
    assert job.sent[1:] == [(15.5, [2, 3])]
