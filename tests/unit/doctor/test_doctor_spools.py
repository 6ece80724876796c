from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest
from support.given import STREAM, arrive, deleted
from support.rounds import Rounds
from support.spool_losses import cut_data, delete_files
from support.stores import stored, writing

from lc_events.application.journal import open_journal
from lc_events.controller.world import World
from lc_events.datasets.spool import Spool
from lc_events.doctor.finding import Level
from lc_events.doctor.spools import check_spools
from lc_events.domain.events import LC_EVENTS, Registry

WAITING = {"operator": ">", "threshold": 500, "metric": "num_of_samples"}


class Node:
    """A state folder whose job has ten pending samples, all of them in the spool."""

    def __init__(self, folder):
        self.rounds = Rounds(trigger={"condition": WAITING}).arrive(10)
        self.store = stored(folder / "events.db", self.rounds.history().events)
        self.spools = folder / "spool"
        self.spool = Spool(self.spools / "default" / "ds")
        self.spool.append(b"s\n" * 10, [2 * n for n in range(1, 11)])
        self.spool.sync()

    def journal(self):
        return open_journal(self.store, Registry(LC_EVENTS))

    def found(self, world=None):
        journal = self.journal()
        try:
            [finding] = check_spools(world or World.load(journal), journal, self.spools)
        finally:
            journal.close()
        return finding

    def goes_on(self, command):
        """The controller commits what a command decides."""
        before = self.rounds.history()
        after = before.when(command)
        journal = writing(self.store)
        journal.record(after.events[len(before.events) :])
        journal.close()
        self.rounds.then(command)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_spool_that_has_all_samples_is_ok_and_stays_as_it_is(node):
    before = {path: path.read_bytes() for path in node.spool.folder.iterdir()}
    assert node.found().level is Level.OK
    assert {path: path.read_bytes() for path in node.spool.folder.iterdir()} == before


@pytest.mark.parametrize(("harm", "count"), [(delete_files, 10), (shutil.rmtree, 10), (cut_data, 5)])
def test_samples_that_jobs_need_and_the_spool_lacks_are_wrong(node, harm, count):
    harm(node.spool.folder)
    finding = node.found()
    assert (finding.check, finding.level) == ("spool", Level.WRONG)
    assert finding.says == f"{count} samples that jobs need are missing from {node.spool.folder}"
    assert "dataset's file" in (finding.advice or "")


def test_samples_that_two_jobs_need_are_counted_once(node):
    journal = node.journal()
    world = World.load(journal)
    journal.close()
    other = "default/lifelonglearningjob/job2"
    world.replace({other: replace(world.get(STREAM), stream=other)})
    delete_files(node.spool.folder)
    assert node.found(world).says.startswith("10 samples")


def test_what_is_no_longer_needed_is_not_missed(node):
    node.goes_on(deleted())
    delete_files(node.spool.folder)
    assert node.found().level is Level.OK


def test_samples_that_the_controller_let_go_of_while_we_looked_elsewhere_are_not_missed(node):
    journal = node.journal()
    earlier = World.load(journal)
    journal.close()
    assert list(earlier.get(STREAM).needed_of("ds"))
    node.goes_on(deleted())
    delete_files(node.spool.folder)
    assert node.found(earlier).level is Level.OK


def test_samples_that_came_while_we_looked_elsewhere_are_not_missed(node):
    journal = node.journal()
    earlier = World.load(journal)
    journal.close()
    node.spool.append(b"s\n" * 5, [2 * n for n in range(1, 6)])
    node.spool.sync()
    node.goes_on(arrive(5))
    assert node.found(earlier).level is Level.OK


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_spool_that_may_not_be_read_is_skipped(node):
    node.spool.folder.chmod(0)
    assert node.found().level is Level.SKIPPED
