from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest
from support.given import arrive, deleted, gm
from support.sedna import condition
from support.waiting import eventually

from lc_events.application.journal import Journal, open_journal
from lc_events.controller.committer import Committer
from lc_events.controller.effects import Effects
from lc_events.controller.lanes import LOCAL
from lc_events.controller.timers import Timers
from lc_events.controller.transaction import Transaction
from lc_events.controller.world import World
from lc_events.domain.events import LC_EVENTS, Registry, TrainDataWritten
from lc_events.domain.job import JobState
from lc_events.runtime.clock import SystemClock
from lc_events.storage.port import WrittenFile

STREAM = "default/lifelonglearningjob/job1"
WAITING = condition("Train", "Waiting", "2024-01-01T00:00:00Z")


class SlowStorage:
    """A storage and the places that lead to it; each write waits until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.files: dict[str, bytes] = {}
        self.may_go = threading.Semaphore(0)

    def lane_of_job(self, _job: JobState) -> str:
        return LOCAL

    def storage(self, _job: JobState, _url: str) -> SlowStorage:
        return self

    def make_folder(self, url: str, *, within: str | None = None) -> None:
        """Nothing to make."""

    def write(self, url: str, chunks: Iterable[bytes], **_: object) -> WrittenFile:
        data = b"".join(chunks)
        self.begun += 1
        assert self.may_go.acquire(timeout=10)
        self.files[url] = data
        return WrittenFile(url, len(data), "0" * 64)


class Becomes:
    """Puts a history into the store as one piece of work."""

    def __init__(self, *commands) -> None:
        self._commands = commands

    def announced(self) -> list[tuple[str, str]]:
        return []

    def carry_out(self, transaction: Transaction) -> None:
        for command in self._commands:
            transaction.keep(command(transaction.job(STREAM)))

    def failed(self, error: Exception) -> None:
        raise error


@pytest.fixture
def journal(tmp_path) -> Iterator[Journal]:
    journal = open_journal(tmp_path / "events.db", Registry(LC_EVENTS), write=True)
    yield journal
    journal.close()


@pytest.mark.parametrize("again", ["/output/job1", "/output//job1/"])
def test_the_next_generation_writes_its_files_after_the_one_before_has_written_its_own(journal, again):
    storage = SlowStorage()
    world = World.load(journal)
    committer = Committer(journal, world, SystemClock(), Timers())
    spools = iter([b"of the first life\n", b"of the second life\n"])
    effects = Effects(committer, world, SystemClock(), locations=storage, spooled=lambda *_: iter([next(spools)]))
    committer.listen(effects.consider)
    effects.start()
    committer.start()
    committer.submit(Becomes(gm(WAITING, message_id="m-1"), arrive(10)))
    eventually(lambda: storage.begun == 1)
    committer.submit(Becomes(deleted("m-2"), gm(WAITING, message_id="m-3", output_dir=again), arrive(10, epoch=2)))
    eventually(lambda: world.get(STREAM).generation == 2)
    storage.may_go.release()
    eventually(lambda: storage.begun == 2)
    assert list(storage.files.values()) == [b"of the first life\n"]
    storage.may_go.release()
    eventually(lambda: world.get(STREAM).train_status == "completed")
    effects.stop()
    committer.stop()
    assert list(storage.files.values())[-1] == b"of the second life\n"
    written = [event for event in journal.stream(STREAM) if isinstance(event, TrainDataWritten)]
    assert [event.files[0]["size"] for event in written] == [len(b"of the second life\n")]
