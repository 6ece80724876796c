from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from eventsourcing.persistence import OperationalError
from support.given import arrive, given, gm, ticked, written
from support.sedna import condition
from support.waiting import eventually

from lc_events.application.journal import Journal, open_journal
from lc_events.application.recorder import ChainedRecorder, StoredRow
from lc_events.controller.latest import LatestValues
from lc_events.controller.outbox import POSITION, Outbox
from lc_events.controller.outbox_mark import OutboxMark
from lc_events.controller.publications import Publications
from lc_events.controller.world import World
from lc_events.domain.events import LC_EVENTS, Registry
from lc_events.errors import BrokerError, LcError, UsageError
from lc_events.mqtt.packets import DISCONNECTED, Publication
from lc_events.mqtt.topics import Topics
from lc_events.runtime.clock import SystemClock

BIRTH = Publication("sedna/state/edge1/status", b"{}", retain=True)
NEXT_BIRTH = Publication(BIRTH.topic, b'{"session":"next"}', retain=True)
MARK = "sedna/state/edge1/outbox"
HISTORY = given(gm(condition("Train", "Waiting")), *[ticked()] * 5, arrive(10), written())


class Broker:
    """Takes publications that are meant for the connection that there is, and confirms them when it is told to."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, Publication]] = []
        self.turned_away: list[Publication] = []
        self.connection = 0
        self._tickets = itertools.count(1)
        self._confirmed = 0

    def connect(self, outbox: Outbox, birth: Publication) -> None:
        self.connection += 1
        outbox.connected(birth, self.connection)

    def publish(self, publication: Publication, connection: int) -> int:
        if connection != self.connection:
            self.turned_away.append(publication)
            raise BrokerError("the connection is gone", code="not_connected")
        ticket = next(self._tickets)
        self.taken.append((ticket, publication))
        return ticket

    def confirm(self, outbox: Outbox, error: str | None = None) -> None:
        while self._confirmed < len(self.taken):
            outbox.published(self.taken[self._confirmed][0], error)
            self._confirmed += 1


@pytest.fixture
def journal(tmp_path: Path):
    with open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True) as opened:
        opened.record(HISTORY.events)
        yield opened


def outbox_of(
    journal: Journal,
    broker: Broker,
    positions: list[int],
    *,
    log_from: Journal | Amid | None = None,
    latest_from: Journal | FailingOnce | Amid | None = None,
    mark: OutboxMark | None = None,
) -> Outbox:
    topics = Topics()
    return Outbox(
        journal=log_from or journal,
        publications=Publications("edge1", topics),
        latest=LatestValues(world=World.load(journal), journal=latest_from or journal, topics=topics, node="edge1"),
        mark=mark or OutboxMark(MARK, SystemClock()),
        clock=SystemClock(),
        publish=broker.publish,
        note_position=lambda _, position: positions.append(position),
    )


def finish(outbox: Outbox, broker: Broker) -> None:
    """Stop it, with the broker's word on whatever it says until then."""
    stopping = threading.Thread(target=outbox.stop, args=(20,))
    stopping.start()
    eventually(lambda: broker.confirm(outbox) or not stopping.is_alive())


def versions_told(broker: Broker) -> list[int]:
    return [orjson.loads(each.payload)["sequence"] for _, each in broker.taken if "/events/" in each.topic]


def reports_sent(broker: Broker) -> list[bytes]:
    return [each.payload for _, each in broker.taken if "/up/" in each.topic]


def values_said(broker: Broker, since: int = 0) -> set[str]:
    return {publication.topic.split("/")[3] for _, publication in broker.taken[since:] if publication.retain}


def positions_marked(broker: Broker) -> list[int]:
    return [orjson.loads(each.payload)["position"] for _, each in broker.taken if each.topic == MARK]


def test_the_position_follows_what_the_broker_confirmed(journal):
    broker, positions = Broker(), []
    outbox = outbox_of(journal, broker, positions)
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: len(broker.taken) >= 1 + len(HISTORY.events) + 1 + 3 + 1)
    assert positions == []
    broker.confirm(outbox)
    finish(outbox, broker)
    assert positions[-1] == outbox.position == len(HISTORY.events)


@pytest.mark.parametrize("lost_at", range(1, 11))
def test_a_new_connection_amid_a_chunk_begins_anew_and_confirms_all(journal, lost_at, caplog, monkeypatch):
    broker, positions = Broker(), []
    outbox = outbox_of(journal, broker, positions)
    sent, reconnected = itertools.count(1), threading.Event()

    def reconnect(_step: str) -> None:
        if next(sent) == lost_at:
            broker.confirm(outbox, DISCONNECTED)
            broker.connect(outbox, BIRTH)
            reconnected.set()

    monkeypatch.setattr("lc_events.controller.outbox.reach", reconnect)
    outbox.start()
    broker.connect(outbox, BIRTH)
    assert reconnected.wait(10)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)
    births = [number for number, (_, publication) in enumerate(broker.taken) if publication == BIRTH]
    again = [publication.topic for _, publication in broker.taken[births[-1] :]]
    assert again.count("sedna/events/edge1/jobs/default/job1") == len(HISTORY.events)
    assert again.count("sedna/up/edge1/lifelonglearningjob/default/job1") == 1
    assert positions == sorted(positions)
    assert caplog.records == []


def test_it_begins_where_the_brokers_own_mark_stands_and_leaves_the_mark_at_the_end(journal):
    broker, positions = Broker(), []
    kept: dict[str, bytes] = {}
    outbox = outbox_of(journal, broker, positions, mark=OutboxMark(MARK, SystemClock(), kept.get))
    outbox.start()
    told: list[int] = []
    for position in (0, len(HISTORY.events) - 3):
        told += range(position + 1, len(HISTORY.events) + 1)
        kept[MARK] = orjson.dumps({"position": position})
        broker.connect(outbox, BIRTH)
        eventually(lambda: broker.confirm(outbox) or versions_told(broker) == told)  # noqa: B023 - called at once
        eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)
    assert versions_told(broker) == told
    assert len([each for _, each in broker.taken if "/up/" in each.topic]) == 1
    assert positions_marked(broker)[-1] == len(HISTORY.events)


def test_a_connection_that_comes_during_the_look_gets_nothing_before_a_look_of_its_own(journal):
    broker, end = Broker(), len(HISTORY.events)
    marks = iter([0, end - 3, 2])

    def look(_topic: str) -> bytes:
        position = next(marks)
        if position == end - 3:
            broker.connect(outbox, BIRTH)
        return orjson.dumps({"position": position})

    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), look))
    outbox.start()
    told: list[int] = []
    for position in (0, 2):
        told += range(position + 1, end + 1)
        broker.connect(outbox, BIRTH)
        eventually(lambda: broker.confirm(outbox) or versions_told(broker) == told)  # noqa: B023 - called at once
        eventually(lambda: broker.confirm(outbox) or outbox.position == end)
    finish(outbox, broker)
    assert versions_told(broker) == told


def test_the_birth_of_a_connection_that_comes_during_the_look_is_said_before_anything_else_on_it(journal):
    broker, births = Broker(), iter([NEXT_BIRTH])

    def look(_topic: str) -> None:
        if (birth := next(births, None)) is not None:
            broker.connect(outbox, birth)

    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), look))
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)
    assert [publication for _, publication in broker.taken[:2]] == [BIRTH, NEXT_BIRTH]


class ConnectingAgain(Broker):
    """Has the next connection already when it takes the report of the second sending."""

    def publish(self, publication: Publication, connection: int) -> int:
        ticket = super().publish(publication, connection)
        if [each.topic for _, each in self.taken].count(publication.topic) == 2 and "/up/" in publication.topic:
            self.connect(self.outbox, NEXT_BIRTH)
        return ticket


def test_a_connection_that_comes_amid_a_round_of_the_one_before_is_begun_without_any_commit(journal):
    broker, looks = ConnectingAgain(), []
    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), looks.append))
    broker.outbox = outbox
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or len(HISTORY.events) in positions_marked(broker))
    outbox.repeat(HISTORY.state.stream, range(1, len(HISTORY.events) + 1))
    eventually(lambda: broker.confirm(outbox) or NEXT_BIRTH in [publication for _, publication in broker.taken])
    eventually(lambda: broker.confirm(outbox) or looks == [MARK, MARK])
    finish(outbox, broker)


class Amid:
    """A store amid whose next reading something `happens`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.happens: Callable[[], None] | None = None
        self.decode = journal.decode

    @property
    def rows(self) -> ChainedRecorder:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return self._journal.rows


@pytest.mark.parametrize("reading", ["a report that is repeated", "latest values"])
def test_what_was_read_for_one_connection_does_not_leave_on_the_next_before_its_birth(journal, reading):
    broker, store = Broker(), Amid(journal)
    outbox = outbox_of(journal, broker, [], log_from=store, latest_from=store)
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or len(HISTORY.events) in positions_marked(broker))
    before = len(broker.taken)
    store.happens = lambda: broker.connect(outbox, NEXT_BIRTH)
    if reading == "latest values":
        outbox.refresh(HISTORY.state.stream)
    else:
        outbox.repeat(HISTORY.state.stream, range(1, len(HISTORY.events) + 1))
    eventually(lambda: broker.confirm(outbox) or values_said(broker, before) >= {"jobs", "models", "heads"})
    finish(outbox, broker)
    assert broker.taken[before][1] == NEXT_BIRTH


def test_a_mark_that_was_due_when_the_broker_was_set_back_does_not_leave_before_the_look(journal):
    broker, end = Broker(), len(HISTORY.events)
    mark = OutboxMark(MARK, SystemClock(), lambda _: orjson.dumps({"position": 0}))
    outbox = outbox_of(journal, broker, [], mark=mark)
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: len(versions_told(broker)) == end and values_said(broker) >= {"jobs", "models", "heads"})
    broker.connection += 1  # of which the outbox is not told yet
    broker.confirm(outbox)
    eventually(lambda: MARK in [publication.topic for publication in broker.turned_away])
    outbox.connected(NEXT_BIRTH, broker.connection)
    eventually(lambda: broker.confirm(outbox) or outbox.position == end)
    finish(outbox, broker)
    assert versions_told(broker) == [*range(1, end + 1)] * 2
    assert positions_marked(broker)[-1] == end


class FailingLook:
    """One that fails at the first try."""

    def __init__(self, error: LcError | None = None) -> None:
        self.times: list[float] = []
        self._error = error or BrokerError("connection refused")

    def __call__(self, _topic: str) -> None:
        self.times.append(time.monotonic())
        if len(self.times) == 1:
            raise self._error


def test_a_tls_file_that_is_away_when_we_look_is_named_and_all_is_sent_once_it_is_there(journal, caplog):
    words = "MQTT CA file /etc/lc/ca.pem: No such file or directory"
    broker, look = Broker(), FailingLook(UsageError(words))
    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), look))
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)
    [record] = caplog.records
    assert record.getMessage() == f"the broker cannot be asked how far it has the log: {words}"


def test_commits_do_not_hasten_the_look_after_one_that_failed(journal):
    broker, look = Broker(), FailingLook()
    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), look))
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: outbox.wake([]) or len(look.times) == 2)
    finish(outbox, broker)
    assert look.times[1] - look.times[0] >= 1.0


@pytest.mark.parametrize("comes", ["connection", "stop"])
def test_a_new_connection_and_a_stop_do_not_wait_for_the_look_after_one_that_failed(journal, comes, monkeypatch):
    monkeypatch.setattr("lc_events.controller.outbox._PAUSE", 3600.0)
    broker, look = Broker(), FailingLook()
    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), look))
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: len(look.times) == 1)
    if comes == "connection":
        broker.connect(outbox, NEXT_BIRTH)
        eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)
    assert versions_told(broker) == list(range(1, len(HISTORY.events) + 1))


class LosingTheConnection(Broker):
    """Gone when it is to take the report of the second sending."""

    def publish(self, publication: Publication, connection: int) -> int:
        ticket = super().publish(publication, connection)
        if "/up/" in publication.topic and len(reports_sent(self)) == 2:
            raise BrokerError("the connection is gone", code="not_connected")
        return ticket


def test_a_report_that_could_not_be_repeated_is_repeated_on_the_next_connection(journal):
    broker = LosingTheConnection()
    outbox = outbox_of(journal, broker, [])
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    outbox.repeat(HISTORY.state.stream, range(1, len(HISTORY.events) + 1))
    eventually(lambda: len(reports_sent(broker)) == 2)
    broker.connect(outbox, NEXT_BIRTH)
    eventually(lambda: broker.confirm(outbox) or len(reports_sent(broker)) == 3)
    finish(outbox, broker)
    assert len(set(reports_sent(broker))) == 1


class FailingToTakeOnce(Broker):
    """Fails, as only a defect does, when it is to take the first report."""

    def publish(self, publication: Publication, connection: int) -> int:
        ticket = super().publish(publication, connection)
        if "/up/" in publication.topic and len(reports_sent(self)) == 1:
            raise RuntimeError("a defect")
        return ticket


def test_gm_may_ask_at_once_again_for_a_report_that_could_not_be_sent(tmp_path):
    with open_journal(tmp_path / "told.db", Registry(LC_EVENTS), write=True) as journal:
        journal.record(HISTORY.events, positions={POSITION: len(HISTORY.events)})
        broker = FailingToTakeOnce()
        outbox = outbox_of(journal, broker, [])
        outbox.start()
        broker.connect(outbox, BIRTH)
        for count in (1, 2):
            for version in range(1, len(HISTORY.events) + 1):
                outbox.report_again(HISTORY.state.stream, version)
            eventually(lambda: broker.confirm(outbox) or len(reports_sent(broker)) == count)  # noqa: B023 - called at once
        finish(outbox, broker)


class AskingAgain(Broker):
    """GM asks for every report again while it is taken."""

    def publish(self, publication: Publication, connection: int) -> int:
        if "/up/" in publication.topic:
            ask_for_all(self.outbox)
        return super().publish(publication, connection)


def ask_for_all(outbox: Outbox) -> None:
    for version in range(1, len(HISTORY.events) + 1):
        outbox.report_again(HISTORY.state.stream, version)


@pytest.mark.parametrize("busy", ["looking", "sending"])
def test_a_report_that_gm_asks_for_again_and_again_while_the_outbox_is_busy_is_sent_once(tmp_path, busy):
    with open_journal(tmp_path / "told.db", Registry(LC_EVENTS), write=True) as journal:
        journal.record(HISTORY.events, positions={POSITION: len(HISTORY.events)})
        broker, may_end = AskingAgain() if busy == "sending" else Broker(), threading.Event()
        told = orjson.dumps({"position": len(HISTORY.events)})
        mark = OutboxMark(MARK, SystemClock(), lambda _: told if may_end.wait(10) else None)
        outbox = broker.outbox = outbox_of(journal, broker, [], mark=mark)
        outbox.start()
        broker.connect(outbox, BIRTH)
        for _ in range(5):
            ask_for_all(outbox)
        outbox.repeat(HISTORY.state.stream, range(1, len(HISTORY.events) + 1))
        may_end.set()
        eventually(lambda: broker.confirm(outbox) or values_said(broker) >= {"jobs", "models", "heads"})
        finish(outbox, broker)
    assert len(reports_sent(broker)) == 1


def test_a_new_report_does_not_wait_behind_all_that_is_told_again(tmp_path):
    long = given(gm(condition("Train", "Waiting")), *[ticked()] * 3000, arrive(10), written()).events
    with open_journal(tmp_path / "long.db", Registry(LC_EVENTS), write=True) as journal:
        journal.record(long, positions={POSITION: len(long) - 1})
        broker, positions = Broker(), []
        outbox = outbox_of(journal, broker, positions, mark=OutboxMark(MARK, SystemClock(), {}.get))
        broker.connect(outbox, BIRTH)
        outbox.start()
        eventually(lambda: broker.confirm(outbox) or outbox.position == len(long), 30)
        finish(outbox, broker)
    topics = [publication.topic for _, publication in broker.taken]
    assert topics[1].startswith("sedna/up/")
    assert versions_told(broker) == list(range(1, len(long) + 1))
    assert positions == [len(long)]


def test_without_a_connection_nothing_of_what_is_committed_is_held_and_all_of_it_is_told_later(journal):
    broker = Broker()
    outbox = outbox_of(journal, broker, [])
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    answer = Publication("sedna/answer/edge1/store", b"{}")
    outbox.publish(answer)
    eventually(lambda: answer in [publication for _, publication in broker.taken])
    broker.confirm(outbox, DISCONNECTED)
    before = rows_and_publications()
    longer = HISTORY.when(*[arrive(1)] * 5000)
    assert len(longer.events) == len(HISTORY.events) + 5000
    for first in range(len(HISTORY.events), len(longer.events), 100):
        journal.record(longer.events[first : first + 100])
        outbox.wake([longer.state])
    known = {id(each) for each in before}
    assert [each for each in rows_and_publications() if id(each) not in known] == []
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(longer.events), 30)
    finish(outbox, broker)
    assert versions_told(broker) == list(range(1, len(longer.events) + 1))


def rows_and_publications() -> list[object]:
    """All that there are in this process, whoever holds them."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) in (StoredRow, Publication)]


def test_a_broker_that_takes_no_mark_is_not_asked_for_one_again(journal, caplog):
    broker = Broker()
    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), {}.get))
    outbox.start()
    broker.connect(outbox, BIRTH)

    def refused_mark() -> bool:
        mine = [ticket for ticket, publication in broker.taken if publication.topic == MARK]
        for ticket in mine:
            outbox.published(ticket, "not authorized", 0x87)
        return bool(mine) or broker.confirm(outbox) or False

    eventually(refused_mark)
    assert [record.getMessage() for record in caplog.records] == [f"the broker refused {MARK}: not authorized"]
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    broker.connect(outbox, BIRTH)
    assert outbox.position == len(HISTORY.events)
    finish(outbox, broker)
    assert [publication.topic for _, publication in broker.taken].count(MARK) == 1


def test_a_broker_that_took_no_mark_because_its_quota_was_used_up_is_asked_for_one_again(journal):
    broker, looks = Broker(), []
    outbox = outbox_of(journal, broker, [], mark=OutboxMark(MARK, SystemClock(), looks.append))
    outbox.start()
    broker.connect(outbox, BIRTH)
    [ticket] = eventually(lambda: [ticket for ticket, publication in broker.taken if publication.topic == MARK])
    outbox.published(ticket, "quota exceeded", 0x97)
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    broker.connect(outbox, NEXT_BIRTH)
    eventually(lambda: broker.confirm(outbox) or len(looks) == 2)
    finish(outbox, broker)


def test_of_two_connections_in_a_row_only_the_newer_birth_is_said(journal):
    broker = Broker()
    outbox = outbox_of(journal, broker, [])
    broker.connection = 2
    outbox.connected(Publication(BIRTH.topic, b"older", retain=True), 1)
    outbox.connected(BIRTH, 2)
    outbox.start()
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)
    assert [publication for _, publication in broker.taken if publication.topic == BIRTH.topic] == [BIRTH]
    assert broker.taken[0][1] == BIRTH


def test_each_connection_begins_with_its_birth_also_before_answers_that_waited(journal):
    broker, answers = Broker(), [Publication("sedna/answer/edge1/me", b"%d" % number) for number in range(200)]
    outbox = outbox_of(journal, broker, [])
    broker.connect(outbox, BIRTH)
    for answer in answers:
        outbox.publish(answer)
    before = len(broker.taken)
    broker.connect(outbox, NEXT_BIRTH)
    assert [publication for _, publication in broker.taken[:before]] == [BIRTH, *answers[:99]]
    assert [publication for _, publication in broker.taken[before:]] == [NEXT_BIRTH, *answers[99:198]]


def test_answers_do_not_wait_for_a_look_that_lasts(journal):
    broker, may_end = Broker(), threading.Event()
    mark = OutboxMark(MARK, SystemClock(), lambda _: None if may_end.wait(10) else b"never")
    outbox = outbox_of(journal, broker, [], mark=mark)
    outbox.start()
    broker.connect(outbox, BIRTH)
    answers = [Publication("sedna/answer/edge1/me", b"%d" % number) for number in range(300)]
    for answer in answers:
        outbox.publish(answer)
    broker.confirm(outbox)
    assert [publication for _, publication in broker.taken] == [BIRTH, *answers]
    may_end.set()
    eventually(lambda: broker.confirm(outbox) or outbox.position == len(HISTORY.events))
    finish(outbox, broker)


class FailingOnce:
    """A store that cannot be read at the first try."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.failed = False

    @property
    def rows(self) -> ChainedRecorder:
        if not self.failed:
            self.failed = True
            raise OperationalError("disk I/O error")
        return self._journal.rows


def test_latest_values_that_could_not_be_read_are_published_once_they_can(journal):
    broker = Broker()
    store = FailingOnce(journal)
    outbox = outbox_of(journal, broker, [], latest_from=store)
    outbox.start()
    broker.connect(outbox, BIRTH)

    def head() -> list[Publication]:
        broker.confirm(outbox)
        return [publication for _, publication in broker.taken if "/heads/" in publication.topic]

    found = eventually(head)
    finish(outbox, broker)
    assert store.failed
    assert orjson.loads(found[-1].payload)["version"] == len(HISTORY.events)


def test_no_resource_changes_while_the_outbox_sees_what_is_due(journal, monkeypatch):
    broker, changed_amid = Broker(), []
    outbox = outbox_of(journal, broker, [])
    due_in = LatestValues.due_in

    def due_in_amid_a_change(latest: LatestValues, now: float) -> float | None:
        if len(changed_amid) < 10:
            changing = threading.Thread(target=outbox.refresh, args=(HISTORY.state.stream,))
            changing.start()
            changing.join(0.05)
            changed_amid.append(not changing.is_alive())
        return due_in(latest, now)

    monkeypatch.setattr(LatestValues, "due_in", due_in_amid_a_change)
    outbox.start()
    broker.connect(outbox, BIRTH)
    eventually(lambda: broker.confirm(outbox) or len(changed_amid) == 10)
    finish(outbox, broker)
    assert not any(changed_amid)
