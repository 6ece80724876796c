from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator

import pytest
from support.sedna import down, job_resource
from support.waiting import eventually

from lc_events.application.journal import Journal, open_journal
from lc_events.application.known import Recent, identify
from lc_events.application.recorder import Known
from lc_events.controller.committer import Committer
from lc_events.controller.timers import Timers
from lc_events.controller.transaction import Transaction
from lc_events.controller.world import World
from lc_events.domain.decisions import Facts, receive_gm_message
from lc_events.domain.events import LC_EVENTS, Registry, TriggerFailed
from lc_events.domain.job import JobState
from lc_events.errors import RefusedError
from lc_events.runtime.clock import SystemClock

NOW = "2024-01-01T00:00:00.000000Z"


def stream(name: str) -> str:
    return f"default/lifelonglearningjob/{name}"


class Insert:
    """Inserts a job; `settled` says how that ended."""

    def __init__(self, name: str, spoil: Callable[[Transaction], None] = lambda _: None) -> None:
        self._name = name
        self._spoil = spoil
        self.settled: str | None = None

    def announced(self) -> list[tuple[str, str]]:
        return []

    def carry_out(self, transaction: Transaction) -> None:
        message = down(job_resource(name=self._name, output_dir=f"/{self._name}"), name=self._name)
        try:
            transaction.keep(receive_gm_message(transaction.job(stream(self._name)), message, Facts(NOW)))
        except RefusedError as error:
            self.settled = error.code
            return
        self._spoil(transaction)
        transaction.then(lambda: self._settle("committed"))

    def failed(self, error: Exception) -> None:
        self._settle(type(error).__name__)

    def _settle(self, how: str) -> None:
        self.settled = how


@pytest.fixture
def journal(tmp_path) -> Iterator[Journal]:
    journal = open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True)
    yield journal
    journal.close()


@pytest.fixture
def committer(journal) -> Iterator[Committer]:
    committer = Committer(journal, World.load(journal), SystemClock(), Timers())
    yield committer
    committer.stop()


def committed_together(committer: Committer, *works: Insert) -> list[str | None]:
    """How each ended, of works that were decided in one batch."""
    for work in works:
        committer.submit(work)
    committer.start()
    eventually(lambda: all(work.settled for work in works))
    return [work.settled for work in works]


def with_a_value_that_no_json_holds(transaction: Transaction) -> None:
    state = transaction.job(stream("bad"))
    failed = {"stage": "Train", "round": 1, "attempt": 1, "code": "x", "error": object()}
    event = TriggerFailed(originator_id=state.stream, originator_version=state.version + 1, time=NOW, **failed)
    transaction.events.append(event)


def that_raises(_transaction: Transaction) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("spoil", "error"),
    [(with_a_value_that_no_json_holds, "TypeError"), (that_raises, "ZeroDivisionError")],
)
def test_what_cannot_be_saved_or_decided_keeps_nothing_else_from_it(committer, journal, spoil, error):
    works = Insert("one"), Insert("bad", spoil), Insert("two")
    assert committed_together(committer, *works) == ["committed", error, "committed"]
    assert journal.rows.streams() == [stream("one"), stream("two")]


def test_after_a_save_that_did_not_fit_the_store_goes_on_where_the_disk_is(committer, journal, tmp_path):
    assert committed_together(committer, Insert("one")) == ["committed"]
    other = open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True)
    world = World.load(other)
    message = down(job_resource(name="one", output_dir="/one"), name="one", message_id="m-other")
    events, _ = receive_gm_message(world.get(stream("one")), message, Facts(NOW))
    other.record(events)
    other.close()
    works = Insert("one"), Insert("two")
    for work in works:
        committer.submit(work)
    eventually(lambda: all(work.settled == "committed" for work in works))
    assert [row.version for row in journal.rows.rows(stream=stream("one"))] == [1, 2, 3]


def test_a_locked_store_is_waited_for(committer, journal, tmp_path):
    journal.rows.datastore.pool.lock_timeout = 0
    with contextlib.closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        work = Insert("one")
        committer.submit(work)
        committer.start()
        eventually(lambda: committer.problem is not None, 15)
        assert work.settled is None
        connection.execute("ROLLBACK")
    eventually(lambda: work.settled == "committed", 15)
    assert committer.problem is None


def test_a_stream_that_cannot_be_read_takes_nothing_and_keeps_its_versions(journal, tmp_path):
    committer = Committer(journal, World.load(journal), SystemClock(), Timers())
    assert committed_together(committer, Insert("one")) == ["committed"]
    committer.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "events.db")) as connection, connection:
        connection.execute("UPDATE stored_events SET topic = 'NeverHeardOf'")
    world = World.load(journal)
    assert list(world.broken) == [stream("one")]
    committer = Committer(journal, world, SystemClock(), Timers())
    assert committed_together(committer, Insert("one"), Insert("two")) == ["integrity", "committed"]
    committer.stop()
    assert [row.version for row in journal.rows.rows(stream=stream("one"))] == [1]


def test_a_head_that_a_reader_took_is_not_put_over_a_newer_one(journal):
    """Readers on other threads must not teach the writer what it knows better."""
    message = down(job_resource(name="one", output_dir="/one"), name="one")
    events, state = receive_gm_message(JobState(stream("one")), message, Facts(NOW))
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            journal.rows.forget_heads()
            journal.head(stream("one"))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(200):
            journal.record(events)
            events, state = receive_gm_message(state, message, Facts(NOW))
    finally:
        stop.set()
        reader.join()
    assert journal.head(stream("one")).version == 200


class StoppedClock(SystemClock):
    """No pause ever ends."""

    def monotonic(self) -> float:
        return 0.0


def test_positions_go_with_the_next_commit_and_one_timer_sees_to_the_last(journal):
    timers = Timers()
    committer = Committer(journal, World.load(journal), StoppedClock(), timers)
    committer.start()
    for number in range(1, 21):
        work = Insert(f"job{number}")
        committer.note_position("outbox", number)
        committer.submit(work)
        eventually(lambda work=work: work.settled == "committed")
        assert journal.rows.position("outbox") == number
    committer.note_position("outbox", 21)
    (flush,) = timers.take_due(float("inf"))
    flush()
    assert journal.rows.position("outbox") == 21
    committer.stop()


def test_a_repeat_within_one_batch_is_seen_before_it_is_committed():
    recent = Recent(lambda _scope, _limit: [])
    identity = identify("worker/w1", None, {"status": "running"}, dup=False)
    known = Known(identity.scope, identity.key, "conditions", 0.0)
    assert not recent.is_repeat(identity, "conditions")
    assert recent.is_repeat(identity, "conditions", [known])
    recent.remember(known)
    assert recent.is_repeat(identity, "conditions")
    assert not recent.is_repeat(identity, "other conditions")
