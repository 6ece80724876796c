"""Rows of a store: some versions, some names, and a long history in pages."""

from __future__ import annotations

import pytest
from support.given import STREAM, arrive, given, gm, ticked
from support.sedna import condition
from support.stores import writing

from lc_events.domain.events import SamplesArrived, Ticked


@pytest.fixture
def rows(tmp_path):
    """The rows of 1,300 events of one job, of which every 13th is an arrival of samples."""
    life = [command for _ in range(100) for command in (arrive(1), *[ticked()] * 12)]
    history = given(gm(condition("Train", "Waiting"), train_prob=0, trigger=None), *life[:-1])
    assert len(history.events) == 1300
    with writing(tmp_path / "events.db") as journal:
        journal.record(history.events)
        yield journal.rows


def test_a_long_history_comes_in_pages_that_follow_each_other(rows):
    pages = list(rows.pages(STREAM))

    assert [len(page) for page in pages] == [500, 500, 300]
    assert [row for page in pages for row in page] == rows.rows(stream=STREAM)


def test_pages_hold_only_what_was_asked_for(rows):
    names = (SamplesArrived.__name__, "Never")
    wanted = [row for row in rows.rows(stream=STREAM) if row.name in names]

    assert len(wanted) == 100
    assert list(rows.pages(STREAM, names=names)) == [wanted]
    assert list(rows.pages(STREAM, gt=500, lte=700, names=names)) == [[r for r in wanted if 500 < r.version <= 700]]
    assert [len(page) for page in rows.pages(STREAM, names=[Ticked.__name__])] == [500, 500, 199]
    assert list(rows.pages(STREAM, names=["Never"])) == []
    assert rows.rows(names=names, gt=wanted[-1].notification_id - 1) == wanted[-1:]
