from __future__ import annotations

from collections import Counter

import orjson
import pytest
from support.sedna import down, job_resource

from lc_events.application.journal import open_journal
from lc_events.controller.latest import LatestValues
from lc_events.controller.world import World
from lc_events.domain.decisions import Facts, receive_gm_message
from lc_events.domain.events import LC_EVENTS, Registry
from lc_events.domain.job import JobState
from lc_events.mqtt.topics import Topics

NAMES = [f"job{number}" for number in range(10)]


def inserted(state: JobState):
    name = state.stream.split("/")[2]
    message = down(job_resource(name=name, output_dir=f"/{name}"), name=name)
    return receive_gm_message(state, message, Facts("2024-01-01T00:00:00.000000Z"))


@pytest.fixture
def journal(tmp_path):
    with open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True) as opened:
        for name in NAMES:
            events, _ = inserted(JobState(f"default/lifelonglearningjob/{name}"))
            opened.record(events)
        yield opened


@pytest.fixture
def world(journal):
    return World.load(journal)


@pytest.fixture
def latest(world, journal):
    return LatestValues(world=world, journal=journal, topics=Topics(), node="edge1")


def test_what_is_due_together_is_published_a_few_resources_at_a_time_and_each_once(latest):
    latest.all_changed()
    published, at_once = Counter(), []
    while latest.due_in(1.0) == 0:
        topics = [publication.topic for publication in latest.take_due(1.0)]
        at_once.append(len({topic.rpartition("/")[2] for topic in topics}))
        published.update(topics)
    assert at_once == [3, 3, 3, 1]
    for kind in ("jobs", "models", "heads"):
        assert {f"sedna/state/edge1/{kind}/default/{name}" for name in NAMES} <= set(published)
    assert set(published.values()) == {1}


def test_a_head_is_that_of_the_state_it_is_published_with_also_when_a_commit_has_gone_ahead(latest, world, journal):
    stream = "default/lifelonglearningjob/job1"
    before = journal.head(stream)
    events, _ = inserted(world.get(stream))
    journal.record(events)
    assert journal.head(stream).version == before.version + 1
    latest.changed(stream)
    (head,) = [each for each in latest.take_due(1.0) if "/heads/" in each.topic]
    value = orjson.loads(head.payload)
    assert (value["version"], value["hash"]) == before
