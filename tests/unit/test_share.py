from __future__ import annotations

import pytest

from lc_events.runtime.share import Share


class Day:
    """Time that passes by working and waiting alone."""

    now = 0.0

    def __init__(self):
        self.worked = 0.0

    def work(self, seconds):
        self.worked += seconds
        self.now += seconds

    def wait(self, seconds):
        self.now += seconds


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_work_has_no_more_than_its_share_of_the_time(share):
    day = Day()
    thread = Share(share, monotonic=lambda: day.now, wait=day.wait)

    for seconds in (0.01, 3, 0.2):
        day.work(seconds)
        thread.yield_to_others()

    assert day.worked / day.now == pytest.approx(share)


def test_time_before_the_work_begins_is_no_work():
    day = Day()
    thread = Share(0.5, monotonic=lambda: day.now, wait=day.wait)
    day.now = 100.0

    thread.begin()
    day.work(1)
    thread.yield_to_others()

    assert day.now == 102.0
