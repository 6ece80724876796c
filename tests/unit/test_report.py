from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

import pytest
from support.given import STREAM
from support.rounds import two_rounds
from support.stores import stored

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.verify import check_in
from lc_events.application.journal import open_journal
from lc_events.domain import events as e
from lc_events.report.page import page
from lc_events.report.story import read_story

HOSTILE = '<script>alert(1)</script>"\x1b[31m\u202e'


class _Tags(HTMLParser):
    def __init__(self, document):
        super().__init__()
        self.open, self.seen, self.attributes = [], set(), []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def archive(tmp_path):
    """Two rounds of a job, and a worker whose words are hostile."""
    events = list(two_rounds().history().events)
    hostile = e.WorkerResultReceived(
        originator_id=STREAM,
        originator_version=events[-1].originator_version + 1,
        time=events[-1].time,
        worker="w1",
        kind="train",
        status="completed",
        results=[{"url": HOSTILE, "metrics": {HOSTILE: [0.25]}}],
        owner_info={"error": HOSTILE},
    )
    path = stored(tmp_path / "events.db", [*events, hostile])
    return Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")


def story_of(archive):
    return read_story(STREAM, archive.rows(STREAM), archive.journal.decode)


def page_of(archive):
    return page(
        story_of(archive),
        check_in(archive, STREAM, ()),
        node="edge1",
        zone="UTC",
        show=lambda moment: moment.isoformat(),
    )


def test_the_page_is_whole_and_asks_nothing_of_the_network(archive):
    tags = _Tags(page_of(archive))
    assert tags.open == []
    assert tags.seen.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert {name for name, _ in tags.attributes}.isdisjoint({"src", "href", "onload"})


def test_hostile_words_of_a_worker_are_shown_and_not_obeyed(archive):
    document = page_of(archive)
    assert "<script" not in document
    assert "&lt;script&gt;" in document
    assert "\x1b" not in document
    assert "\u202e" not in document


def test_the_numbers_are_those_of_the_history(archive):
    story, state = story_of(archive), archive.state(STREAM)
    assert story.state == state
    assert [each.number for each in story.rounds] == list(range(1, state.round + 1))
    triggered = [archive.journal.decode(r) for r in archive.rows(STREAM) if r.name == "TrainingTriggered"]
    assert [each.samples for each in story.rounds] == [event.samples for event in triggered]
    written = [archive.journal.decode(r) for r in archive.rows(STREAM) if r.name == "TrainDataWritten"]
    assert [each.train for each in story.rounds] == [event.files[0] for event in written]


def test_the_records_of_a_round_are_the_train_records_that_arrived_before_it(archive):
    expected, arrived = [], []
    for row in archive.rows(STREAM):
        event = archive.journal.decode(row)
        if isinstance(event, e.SamplesArrived) and event.train:
            arrived.append(f"{event.epoch}:{event.rows[0]}-{event.rows[0] + event.train - 1}")
        elif isinstance(event, e.TrainingTriggered):
            expected.append(arrived)
            arrived = []
    assert [each.records for each in story_of(archive).rounds] == expected


def test_each_stay_begins_where_the_one_before_ended(archive):
    stays = story_of(archive).stays
    assert all(before.end == after.start for before, after in pairwise(stays))
