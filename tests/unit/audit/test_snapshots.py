from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as for_any
from hypothesis import settings
from support.given import STREAM, through_json
from support.rounds import two_rounds
from support.stores import writing
from support.tampering import Tampered
from unit.domain.test_any_sequence import assert_same, lived, relentless, sequences

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.verify import check_in
from lc_events.application.journal import open_journal
from lc_events.application.snapshot_json import SCHEMA, read_state, write_state
from lc_events.application.snapshots import Snapshots
from lc_events.domain.dataset import fold_dataset
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve, fold

EVENTS = two_rounds().history().events


@pytest.fixture
def path(tmp_path):
    """Two rounds of a job, written event by event, with a snapshot every 5 events."""
    path = tmp_path / "events.db"
    journal = writing(path)
    snapshots, state = Snapshots(journal, every=5), JobState(STREAM)
    for event in EVENTS:
        state = evolve(state, event)
        journal.record([event])
        snapshots.consider([state])
    journal.close()
    return path


def opened(path):
    return Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")


def kept(path):
    archive = opened(path)
    return [snapshot.version for snapshot in archive.journal.rows.snapshots(STREAM, schema=SCHEMA)]


@settings(relentless, max_examples=60)
@for_any(sequences)
def test_a_snapshot_loads_as_the_state_that_the_stored_events_fold_to(steps: list[Any]):
    device = lived(steps)

    loaded = read_state(STREAM, write_state(device.state))

    assert_same(loaded, fold(STREAM, [through_json(event) for event in device.events]))


def test_one_is_taken_each_so_many_events(path):
    assert kept(path) == list(range(len(EVENTS) // 5 * 5, 0, -5))


def test_states_are_the_same_with_and_without(path):
    with_snapshots = opened(path)
    without = Archive(with_snapshots.journal, replace(CONTROLLER, read_snapshot=None), "edge1")

    for version in range(1, len(EVENTS) + 1):
        assert_same(with_snapshots.state(STREAM, version), without.state(STREAM, version))


def test_the_newest_one_is_used(path):
    with Tampered(path) as store:
        store.run("UPDATE snapshots SET state = replace(state, '\"ticks\":', '\"ticks\":9')")

    assert opened(path).view(opened(path).state(STREAM))["counts"]["ticks"] > 90


def test_one_that_lies_is_found_by_verify(path):
    assert check_in(opened(path), STREAM).ok
    with Tampered(path) as store:
        store.run("UPDATE snapshots SET state = replace(state, '\"ticks\":', '\"ticks\":9') WHERE version = 10")

    assert check_in(opened(path), STREAM)[1:4] == (10, "", "its snapshot is not what the events fold to")


@pytest.mark.parametrize("stored", [b"", b"[]", b"{}", b'{"stream":1}', b'"x"', b"\xff"])
def test_one_that_does_not_load_is_passed_over(path, stored):
    whole = opened(path).state(STREAM)
    with Tampered(path) as store:
        store.run("UPDATE snapshots SET state = ?", stored)

    assert_same(opened(path).state(STREAM), whole)


def test_one_of_another_schema_is_passed_over_and_dropped_by_the_writer(path):
    with Tampered(path) as store:
        store.run("UPDATE snapshots SET schema = '0-old' WHERE version > 10")

    assert kept(path) == [10, 5]
    journal = open_journal(path, CONTROLLER.registry, write=True)
    Snapshots(journal, every=5)
    assert journal.rows.newest_snapshots() == {STREAM: 10}


def test_one_of_a_history_that_was_rewritten_is_passed_over(path):
    with Tampered(path) as store:
        store.set_fields(1, id="m-other")
        store.link_again()

    assert kept(path) == []


def test_a_writer_that_starts_again_goes_on_from_the_last(path):
    journal = open_journal(path, CONTROLLER.registry, write=True)
    state = opened(path).state(STREAM)
    Snapshots(journal, every=5).consider([state])
    Snapshots(journal, every=1).consider([state])

    assert kept(path)[:2] == [len(EVENTS), len(EVENTS) // 5 * 5]


def test_one_that_cannot_be_written_is_logged_and_nobody_fails(path, caplog):
    journal = open_journal(path, CONTROLLER.registry, write=True)
    snapshots = Snapshots(journal, every=1)
    state = opened(path).state(STREAM)
    with Tampered(path) as store:
        store.run("ALTER TABLE snapshots RENAME TO elsewhere")

    snapshots.consider([state])

    assert "no such table: snapshots" in caplog.text


def test_a_dataset_has_snapshots_too():
    dataset = fold_dataset("default/dataset/ds", [])

    assert read_state(dataset.stream, write_state(dataset)) == dataset
