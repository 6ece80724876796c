from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

import pytest
from support.given import STREAM, deleted, failed, written
from support.rounds import Rounds, two_rounds
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
    return archived(tmp_path, [*events, hostile])


@pytest.fixture
def told(tmp_path):
    """The story of a history, and the page that shows it."""

    def tell(rounds):
        archive = archived(tmp_path / f"{len(rounds.commands)}", rounds.history().events)
        return story_of(archive), page_of(archive)

    return tell


def archived(folder, events):
    path = stored(folder / "events.db", events)
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
            arrived.append((event.epoch, (event.rows[0], event.rows[0] + event.train)))
        elif isinstance(event, e.TrainingTriggered):
            expected.append(arrived)
            arrived = []
    found = [[(records.epoch, records.rows) for records in each.records] for each in story_of(archive).rounds]
    assert found == expected


def test_each_stay_begins_where_the_one_before_ended(archive):
    stays = story_of(archive).stays
    assert all(before.end == after.start for before, after in pairwise(stays))


def moved():
    """A job that learned from dataset a, and then from b, whose spool begins at 0 as that of a did."""
    return Rounds(dataset="a").arrive(10).trained().changed(dataset="b").arrive(10).trained()


def test_what_a_job_learned_from_another_dataset_is_not_what_it_learns_from_now(told):
    story, document = told(moved())
    assert [{records.dataset for records in each.records} for each in story.rounds] == [{"a"}, {"b"}]
    assert [sum(r.rows[1] - r.rows[0] for r in each.records) for each in story.rounds] == [8, 8]
    assert "<td>a 1:0-7</td>" in document
    assert "<td>b 1:0-7</td>" in document


def full_disk(rounds):
    return rounds.wait().then(failed("full", "no space left", now=rounds.time))


def test_a_round_whose_files_could_not_be_written_at_first_has_not_failed(told):
    rounds = full_disk(Rounds().arrive(9)).trained()
    story, document = told(rounds)
    assert [each.failed for each in story.rounds] == [None]
    assert "<td>deployed</td>" in document
    assert "fails, and is tried again" not in document


def test_a_round_that_fails_just_now_is_told_above_all_rounds(told):
    story, document = told(full_disk(Rounds().arrive(9)))
    assert [each.failed for each in story.rounds] == [None]
    assert "<dt>fails, and is tried again</dt><dd>Train, since 2024-01-01T00:03" in document
    assert ": no space left</dd>" in document


def test_a_model_that_was_given_up_has_failed(told):
    rounds = Rounds().arrive(9).evaluated()
    rounds.wait().then(failed("missing", "no such model", final=True, now=rounds.time))
    story, document = told(rounds)
    assert [each.failed for each in story.rounds] == ["no such model"]
    assert "<td>no such model</td>" in document


def test_a_round_goes_on_after_a_worker_that_failed(told):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Ready", "Train/Running").worker("train", "failed")
    assert told(rounds)[0].rounds[0].failed == "train worker w1 failed"


def test_a_worker_that_succeeds_where_another_failed_mends_the_round(told):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Ready", "Train/Running").worker("train", "failed")
    assert told(rounds.worker("train", "completed", name="w2"))[0].rounds[0].failed is None


def test_what_a_worker_of_a_deleted_job_says_late_is_not_of_the_next_life(told):
    rounds = two_rounds().then(deleted())
    rounds.conditions.clear()
    before = told(rounds)[0].rounds
    rounds.told("Train/Waiting", operation="insert").worker("eval", "failed")
    assert told(rounds)[0].rounds == before


def test_rounds_of_two_lives_are_told_apart(told):
    rounds = Rounds().arrive(9).trained().then(deleted())
    rounds.conditions.clear()
    _, document = told(rounds.told("Train/Waiting", operation="insert").arrive(9))
    assert "<td>1</td>" in document
    assert "<td>1 of generation 2</td>" in document
