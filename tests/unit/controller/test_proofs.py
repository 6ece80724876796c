from __future__ import annotations

import threading
from collections import Counter
from time import monotonic

import pytest
from support.waiting import eventually

from lc_events.controller.proofs import Proofs
from lc_events.errors import LcError, RefusedError


@pytest.fixture
def proofs():
    proofs = Proofs(monotonic=monotonic)
    proofs.start()
    yield proofs
    proofs.stop()


class Works:
    """Work that is counted; the one called `held` lasts until it is let go."""

    def __init__(self):
        self.done = Counter()
        self.told = []
        self.holds, self.go = threading.Event(), threading.Event()

    def ask(self, proofs, key):
        def work(_yield_to_others):
            self.done[key] += 1
            if key == "held":
                self.holds.set()
                assert self.go.wait(20)
            return {"key": key, "number": self.done[key]}

        proofs.ask(key, work, self.told.append)


def test_who_waits_for_the_same_shares_one_piece_of_work(proofs):
    works = Works()
    works.ask(proofs, "held")
    assert works.holds.wait(10)
    for key in ("a", "b", "a", "a"):
        works.ask(proofs, key)
    works.go.set()

    eventually(lambda: len(works.told) == 5)
    assert works.done == {"held": 1, "a": 1, "b": 1}
    assert [told["key"] for told in works.told] == ["held", "a", "a", "a", "b"]


def test_work_that_has_begun_is_no_answer_to_who_asks_only_then(proofs):
    works = Works()
    works.ask(proofs, "held")
    assert works.holds.wait(10)
    works.ask(proofs, "held")
    works.go.set()

    eventually(lambda: len(works.told) == 2)
    assert [told["number"] for told in works.told] == [1, 2]


def test_only_a_hundred_may_wait(proofs):
    works = Works()
    works.ask(proofs, "held")
    assert works.holds.wait(10)
    for _ in range(100):
        works.ask(proofs, "a")

    with pytest.raises(RefusedError, match="100 such requests wait already") as refused:
        works.ask(proofs, "b")

    assert refused.value.code == "rate"
    works.go.set()
    eventually(lambda: len(works.told) == 101)


def test_what_has_begun_is_given_up_at_the_end():
    told, begun = [], threading.Event()

    def endless(yield_to_others):
        begun.set()
        try:
            while True:
                yield_to_others()
        except LcError as error:
            return error

    proofs = Proofs(monotonic=monotonic)
    proofs.start()
    proofs.ask("endless", endless, told.append)
    assert begun.wait(10)
    proofs.stop()

    assert [error.code for error in told] == ["ending"]


def test_an_asker_that_cannot_be_told_does_not_end_the_answers_of_others(proofs, caplog):
    works = Works()

    def broken(_outcome):
        raise OSError

    proofs.ask("a", lambda _yield_to_others: {}, broken)
    works.ask(proofs, "b")

    assert eventually(lambda: works.told) == [{"key": "b", "number": 1}]
    assert "an answer could not be given" in caplog.text
