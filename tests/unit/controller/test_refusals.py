"""What the log says of refused messages: each by itself, but of a flood only how many there were."""

from __future__ import annotations

import pytest

from lc_events.controller.quarantine import Quarantine
from lc_events.controller.refusals import Refusals
from lc_events.mqtt.topics import Topics


class Refused:
    """Refusals at a clock that stands still; what is to be done later is done by `later`."""

    def __init__(self, folder):
        self.quarantine = Quarantine(folder)
        self.published = []
        self.planned = []
        self.refusals = Refusals(
            node="edge1",
            topics=Topics("sedna"),
            quarantine=self.quarantine,
            publish=self.published.append,
            monotonic=lambda: 0.0,
            later=lambda seconds, callback: self.planned.append((seconds, callback)),
        )

    def refuse(self, number):
        topic = f"sedna/worker/edge1/w{number}/info"
        self.refusals.refuse(time=f"2024-01-01T00:00:{number}Z", topic=topic, payload=b"", code="malformed", error="no")

    def later(self):
        planned, self.planned = self.planned, []
        for _, callback in planned:
            callback()


@pytest.fixture
def refused(tmp_path):
    return Refused(tmp_path)


def test_each_refused_message_is_logged_and_reported_within_the_rate(refused, caplog):
    for number in range(100):
        refused.refuse(number)
    assert len(caplog.messages) == len(refused.published) == 100
    assert "sedna/worker/edge1/w99/info: refused (malformed: no), kept as " in caplog.messages[-1]
    assert refused.planned == []


def test_a_flood_is_counted_in_the_log_and_each_message_is_kept(refused, caplog):
    for number in range(350):
        refused.refuse(number)
    assert len(caplog.messages) == 100
    refused.later()
    assert caplog.messages[100:] == ["250 more were refused within 10 s: see lc-events quarantine list"]
    assert refused.quarantine.counts() == {"malformed": 350}
    refused.refuse(351)
    refused.later()
    assert caplog.messages[101:] == ["1 more were refused within 10 s: see lc-events quarantine list"]
