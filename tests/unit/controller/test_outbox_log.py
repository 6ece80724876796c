from __future__ import annotations

from pathlib import Path

import pytest
from support.given import arrive, given, gm, written
from support.sedna import condition

from lc_events.application.journal import Journal, open_journal
from lc_events.controller.outbox_log import OutboxLog
from lc_events.controller.publications import Publications
from lc_events.domain.events import LC_EVENTS, DatasetObserved, DuplicateReceived, Registry
from lc_events.mqtt.topics import Topics

HISTORY = given(gm(condition("Train", "Waiting")), arrive(10), written()).events
DATASET = {"originator_id": "default/dataset/ds", "originator_version": 1, "time": "2024-01-01T00:00:00.000000Z"}
UNREPORTABLE = [
    DatasetObserved(records=7, rows=[], bytes=[0, 9], mark={}, **DATASET),
    DatasetObserved(records=7, rows=7, bytes=[0, 9], mark={}, **DATASET),
    DuplicateReceived(worker="no/level", **DATASET),
]


@pytest.fixture(params=UNREPORTABLE, ids=["too short", "no range", "no name for a topic"])
def journal(request, tmp_path: Path):
    """A log that begins with an event that can be decoded and not be reported."""
    with open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True) as opened:
        opened.record([request.param, *HISTORY])
        yield opened


def log_of(journal: Journal) -> OutboxLog:
    return OutboxLog(journal, Publications("edge1", Topics()), position=0)


def test_reports_behind_an_event_that_cannot_be_reported_do_not_wait(journal, caplog):
    log = log_of(journal)
    rows, _ = log.next_rows()

    [report] = log.urgent(rows)

    assert report.publication.topic == "sedna/up/edge1/lifelonglearningjob/default/job1"
    [complaint] = caplog.messages
    assert complaint.startswith("default/dataset/ds version 1 cannot be reported: ")


def test_of_an_event_that_cannot_be_reported_there_is_no_report_to_repeat(journal):
    log = log_of(journal)

    assert log.report("default/dataset/ds", 1) is None
    assert log.report(HISTORY[-1].originator_id, HISTORY[-1].originator_version) is not None
