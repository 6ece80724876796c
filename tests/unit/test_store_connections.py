from __future__ import annotations

import sqlite3

from support.given import given, gm
from support.sedna import condition

from lc_events.application.journal import open_journal
from lc_events.domain.events import LC_EVENTS, Registry


def test_a_statement_that_comes_again_is_not_prepared_again(tmp_path):
    prepared = []

    def note(action: int, *_: object) -> int:
        if action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_SELECT):
            prepared.append(action)
        return sqlite3.SQLITE_OK

    with open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True) as journal:
        with journal.rows.datastore.get_connection(commit=False) as connection:
            connection.cursor().sqlite_cursor.connection.set_authorizer(note)
        counts = []
        for number in range(3):
            journal.record([], positions={"outbox": number})
            journal.rows.rows(gt=number)
            journal.rows.known_keys([("scope", str(number))])
            counts.append(len(prepared))
    assert counts == [counts[0]] * 3
    assert counts[0] > 0


def test_the_library_reads_what_we_write(tmp_path):
    history = given(gm(condition("Train", "Waiting")))
    with open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True) as journal:
        journal.record(history.events)
        assert list(journal.events.get(history.state.stream)) == history.events
        (notification,) = journal.notification_log.select(start=1, limit=10)
        assert (notification.id, notification.originator_version) == (1, 1)
