"""What is said of a job whose dataset gives no samples."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.given import STREAM, facts, ticked
from support.rounds import BEGAN, Rounds
from support.sedna import DATASET, dataset_resource, down
from support.stores import stored
from support.tampering import Tampered

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.why import why
from lc_events.application.journal import open_journal
from lc_events.domain.dataset import DatasetState, observe_dataset, receive_dataset_message, unreadable_dataset
from lc_events.domain.stamp import stamp


@pytest.mark.parametrize(
    ("url", "code", "when"),
    [
        ("s3://bkt/ds.txt", "missing", "looked at again at least every LC_DATASET_SECONDS, by default 60 s"),
        ("s3://bkt/ds.txt", "denied", "tried again within 60 s"),
        ("/data/ds.txt", "denied", "looked at again at least every LC_DATASET_SECONDS, by default 60 s"),
    ],
)
def test_a_dataset_that_cannot_be_read_is_told_with_when_it_is_looked_at(ask, url, code, when):
    words = f"cannot read {url}"
    message = down(dataset_resource(url=url), kind=DATASET, name="ds")
    inserted, dataset = receive_dataset_message(DatasetState("default/dataset/ds"), message, stamp(BEGAN))
    unreadable, _ = unreadable_dataset(dataset, code=code, error=words, now=stamp(BEGAN))
    rounds = Rounds()
    rounds.then(ticked(at=facts(rounds.wait().time, note=words)))

    answer = ask(rounds, dataset=[inserted, unreadable])
    assert answer.sentence == f"Round 1 has not fired: {words}; it is {when}."
    assert answer.facts["waits_for"] == "dataset"


def test_a_dataset_that_is_not_here_is_not_looked_for(ask):
    rounds = Rounds()
    rounds.then(ticked(at=facts(rounds.wait().time, note="dataset default/ds is not here")))
    assert ask(rounds).sentence == "Round 1 has not fired: dataset default/ds is not here."


@pytest.fixture
def dataset():
    """The dataset of the job, with a minute between one event and the next: its events so far."""

    class Dataset:
        def __init__(self):
            self.now, self.events, self.state = BEGAN, [], DatasetState("default/dataset/ds")

        def then(self, decide, *args, **values):
            self.now += timedelta(minutes=1)
            decided, self.state = decide(self.state, *args, now=stamp(self.now), **values)
            self.events.append(decided)
            return self

        def told(self, resource, operation="insert"):
            return self.then(receive_dataset_message, down(resource, kind=DATASET, name="ds", operation=operation))

        def read(self, records):
            here = {"rows": (self.state.records, records), "span": (0, records), "mark": {}, "spooled": None}
            return self.then(observe_dataset, **here)

        def unreadable(self, error):
            return self.then(unreadable_dataset, code="missing", error=error)

    return Dataset().told(dataset_resource())


LOOKED_AT = "; it is looked at again at least every LC_DATASET_SECONDS, by default 60 s."


def test_a_dataset_that_cannot_be_read_is_told_beside_what_is_pending(ask, dataset):
    dataset.read(2).unreadable("no file /data/ds.txt").unreadable("no folder /data")
    answer = ask(Rounds().arrive(2), later=timedelta(minutes=9), dataset=dataset.events)

    assert answer.sentence == (
        "Round 1 has not fired: 1 sample is pending, more than 3 needed; "
        f"no more come, for dataset default/ds cannot be read since 00:03: no folder /data{LOOKED_AT}"
    )
    assert answer.facts["waits_for"] == "dataset"
    assert answer.facts["value"] == 1
    assert answer.facts["dataset_error"] == "no folder /data"
    assert answer.facts["dataset_since"] == stamp(BEGAN + timedelta(minutes=3))


def test_an_earlier_trouble_of_a_dataset_that_could_be_read_since_does_not_count(ask, dataset):
    dataset.unreadable("no file").read(2)
    answer = ask(Rounds().arrive(2), later=timedelta(minutes=9), dataset=dataset.events)
    assert answer.facts["waits_for"] == "samples"

    dataset.unreadable("no file again")
    answer = ask(Rounds().arrive(2), later=timedelta(minutes=9), dataset=dataset.events)
    assert "cannot be read since 00:04: no file again; it is looked at" in answer.sentence


def test_a_dataset_that_was_deleted_is_told_beside_what_is_pending(ask, dataset):
    dataset.read(2).told(None, operation="delete")
    answer = ask(Rounds().arrive(2), later=timedelta(days=1), dataset=dataset.events)

    assert answer.sentence == (
        "Round 1 has not fired: 1 sample is pending, more than 3 needed; "
        "no more come, for dataset default/ds was deleted at 00:03 yesterday."
    )
    assert answer.facts["waits_for"] == "dataset"
    assert answer.facts["dataset_error"] is None
    assert answer.facts["dataset_since"] == stamp(BEGAN + timedelta(minutes=3))


def test_a_dataset_that_was_deleted_since_the_trigger_was_looked_at_is_told(ask, dataset):
    dataset.told(None, operation="delete")
    answer = ask(Rounds(), later=timedelta(minutes=9), dataset=dataset.events)

    assert answer.sentence == (
        "Round 1 has not fired: no train sample is pending, and the dataset ds gave none yet; "
        "no more come, for dataset default/ds was deleted at 00:02."
    )
    assert answer.facts["waits_for"] == "dataset"


def test_what_became_of_a_dataset_later_is_not_told_of_an_earlier_moment(ask, dataset):
    dataset.read(2)
    dataset.now += timedelta(minutes=30)
    dataset.unreadable("no file")
    rounds = Rounds().arrive(2)
    rounds.wait(60)

    assert "no file" in ask(rounds, dataset=dataset.events).sentence
    then = ask(rounds, dataset=dataset.events, time=stamp(BEGAN + timedelta(minutes=20)))
    assert then.sentence == "Round 1 has not fired: 1 sample is pending, more than 3 needed."


def test_a_closed_window_is_what_is_waited_for_even_without_a_dataset(ask, dataset):
    dataset.read(1000).unreadable("no file")
    night = {"timer": {"start": "01:00", "end": "05:00"}}
    rounds = Rounds(began=BEGAN - timedelta(hours=6), trigger=night).arrive(8)
    answer = ask(rounds, later=timedelta(hours=12), dataset=dataset.events)

    assert answer.sentence.endswith(
        "it opens again at 01:00 tomorrow; no more come, for dataset default/ds cannot be read since 00:03: no file"
        + LOOKED_AT
    )
    assert answer.facts["waits_for"] == "window"


def test_a_dataset_whose_history_is_broken_does_not_keep_its_job_from_being_explained(tmp_path, dataset):
    rounds = Rounds().arrive(2)
    path = stored(tmp_path / "events.db", rounds.history().events, *dataset.unreadable("no file").events)
    with Tampered(path) as tampered:
        tampered.run("UPDATE stored_events SET state = x'00' WHERE originator_id = 'default/dataset/ds'")
    archive = Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")

    assert why(archive, STREAM, now=rounds.time).facts["waits_for"] == "samples"
