from __future__ import annotations

from dataclasses import fields
from typing import Any

import orjson
from hypothesis import given as for_any
from hypothesis import strategies as st
from support.sedna import DATASET, dataset_resource, down

from lc_events.domain import events as e
from lc_events.domain.dataset import (
    DatasetState,
    confirm_dataset_reports,
    duplicate_dataset_message,
    fold_dataset,
    observe_dataset,
    receive_dataset_message,
    reset_dataset,
    unreadable_dataset,
)
from lc_events.domain.views import dataset_view

STREAM = "default/dataset/ds"
NOW = "2024-01-01T00:00:00.000000Z"
REGISTRY = e.Registry(e.DATASET_EVENTS)


class Story:
    """A dataset's history and the events of its last decision."""

    def __init__(self) -> None:
        self.state = DatasetState(STREAM)
        self.events: list[e.Event] = []
        self.decided: list[Any] = []

    def _keep(self, decision: tuple[list[e.Event], DatasetState]) -> Story:
        self.decided, self.state = decision
        self.events += self.decided
        return self

    def insert(self, *, operation: str = "insert", message_id: str | None = None, **spec: Any) -> Story:
        content = None if operation == "delete" else dataset_resource(**spec)
        message = down(content, kind=DATASET, name="ds", operation=operation, message_id=message_id)
        return self._keep(receive_dataset_message(self.state, message, NOW))

    def delete(self) -> Story:
        return self.insert(operation="delete")

    def grow(self, count: int) -> Story:
        rows = (self.state.records, self.state.records + count)
        span = (rows[0] * 10, rows[1] * 10)
        mark = {"offset": span[1], "rows": rows[1]}
        spooled = rows if count else None
        return self._keep(observe_dataset(self.state, rows=rows, span=span, mark=mark, now=NOW, spooled=spooled))

    def reset(self) -> Story:
        return self._keep(reset_dataset(self.state, cause="shrank", mark=None, now=NOW))

    def break_(self, error: str = "gone", now: str = NOW) -> Story:
        return self._keep(unreadable_dataset(self.state, code="missing", error=error, now=now))

    def confirm(self, *versions: int) -> Story:
        return self._keep(confirm_dataset_reports(self.state, versions, NOW))

    def repeat(self, message_id: str | None = None) -> Story:
        return self._keep(duplicate_dataset_message(self.state, message_id, NOW))

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.decided]


def test_a_dataset_is_there_from_its_insert_to_its_delete():
    story = Story()
    assert story.state.note == "dataset default/ds is not here"
    assert story.insert(message_id="d-1").state.is_live
    assert (story.state.url, story.state.format, story.state.gm_message) == ("/data/ds.txt", "txt", "d-1")
    assert story.delete().names == ["GlobalManagerMessageReceived", "DatasetDeleted"]
    assert not story.state.is_live
    assert story.delete().names == ["GlobalManagerMessageReceived"]


def test_the_number_of_samples_is_to_be_reported_whenever_it_changes():
    story = Story().insert().grow(10)
    assert story.state.records == 10
    assert story.state.unconfirmed == story.state.version
    assert story.confirm(story.state.version).state.unconfirmed is None
    assert story.grow(0).state.unconfirmed is None


def test_only_the_newest_number_waits_for_confirmation():
    story = Story().insert().grow(10)
    first = story.state.version
    story.grow(5)
    assert story.confirm(first).decided == []
    assert story.state.unconfirmed == first + 1


def test_a_reset_begins_another_file():
    story = Story().insert().grow(10).reset()
    assert (story.state.epoch, story.state.records, story.state.mark) == (2, 0, None)
    assert story.state.unconfirmed == story.state.version


def test_another_url_or_format_is_another_file():
    story = Story().insert().grow(10).insert(url="/data/other.txt")
    assert story.names == ["GlobalManagerMessageReceived", "DatasetReset"]
    assert story.insert(url="/data/other.txt", format_="csv").names == ["GlobalManagerMessageReceived"]


def test_the_same_format_in_other_letters_is_the_same_file():
    assert Story().insert(format_="csv").grow(3).insert(format_="CSV").names == ["GlobalManagerMessageReceived"]


def test_what_did_not_change_is_not_stored_again():
    story = Story().insert().insert(message_id="d-2")
    assert set(REGISTRY.stored(story.decided[0])) == {"time", "operation", "id"}


def test_a_new_object_of_the_same_name_goes_on_in_the_file_and_is_told_what_it_holds():
    story = Story().insert().grow(10).confirm(2).delete().insert()
    assert story.names == ["GlobalManagerMessageReceived", "DatasetObserved"]
    assert (story.state.generation, story.state.records, story.state.epoch) == (2, 10, 1)
    assert story.state.unconfirmed == story.state.version


def test_a_deleted_dataset_reports_nothing_more():
    assert Story().insert().grow(10).delete().state.unconfirmed is None


def test_an_error_is_recorded_first_when_it_changes_and_then_hourly():
    story = Story().insert().break_()
    assert story.names == ["DatasetUnreadable"]
    assert story.state.note == "gone"
    assert story.break_(now="2024-01-01T00:59:59.000000Z").decided == []
    assert story.break_(now="2024-01-01T01:00:00.000000Z").names == ["DatasetUnreadable"]
    assert story.break_("denied").names == ["DatasetUnreadable"]
    assert story.grow(0).state.note is None


def test_an_error_of_a_file_that_is_no_longer_named_is_forgotten():
    assert Story().insert().break_().insert(url="/data/other.txt").state.problem is None
    assert Story().insert().break_().insert().state.problem is not None


def test_a_repeat_is_counted_and_changes_nothing_else():
    story = Story().insert(message_id="d-1").insert(message_id="d-2").repeat("d-1")
    assert (story.state.duplicates, story.state.gm_message) == (1, "d-2")


def test_the_view_is_the_payload_of_the_datasets_topic():
    story = Story().insert(message_id="d-1").grow(10)
    assert dataset_view(story.state) == {
        "samples": 10,
        "url": "/data/ds.txt",
        "format": "txt",
        "error": None,
        "gm_message": "d-1",
        "time": NOW,
    }
    assert dataset_view(story.break_("no such file").state)["error"] == "no such file"


steps = st.one_of(
    st.builds(
        lambda url, format_, id_: lambda s: s.insert(url=url, format_=format_, message_id=id_),
        st.sampled_from(["/a.txt", "/b.txt"]),
        st.sampled_from(["txt", "csv", "CSV"]),
        st.sampled_from([None, "m-1", "m-2"]),
    ),
    st.just(Story.delete),
    st.just(Story.reset),
    st.builds(lambda n: lambda s: s.grow(n), st.integers(0, 20)),
    st.builds(lambda text: lambda s: s.break_(text), st.sampled_from(["gone", "denied"])),
    st.builds(lambda versions: lambda s: s.confirm(*versions), st.lists(st.integers(0, 20), max_size=3)),
    st.builds(lambda id_: lambda s: s.repeat(id_), st.sampled_from([None, "m-1"])),
)


@for_any(st.lists(steps, max_size=25))
def test_whatever_happens_the_fold_of_the_stored_events_is_the_live_state(taken: list[Any]):
    story = Story()
    for step in taken:
        step(story)
    assert [event.originator_version for event in story.events] == list(range(1, len(story.events) + 1))
    read = [
        type(event)(
            originator_id=STREAM,
            originator_version=event.originator_version,
            **orjson.loads(orjson.dumps(REGISTRY.stored(event))),
        )
        for event in story.events
    ]
    replayed = fold_dataset(STREAM, read)
    for field in fields(DatasetState):
        assert getattr(replayed, field.name) == getattr(story.state, field.name), field.name
    assert dataset_view(replayed) == dataset_view(story.state)
