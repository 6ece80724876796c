from __future__ import annotations

from lc_events.controller.outbox_repeats import DueRepeats, Report

FIRST, SECOND = Report("default/lifelonglearningjob/job1", 3), Report("default/dataset/ds", 1)


def all_taken(repeats: DueRepeats) -> list[Report]:
    taken = []
    while (report := repeats.take()) is not None:
        taken.append(report)
        repeats.done(is_still_due=False)
    return taken


def test_each_is_due_once_in_the_order_in_which_they_became_so():
    repeats = DueRepeats()
    for report in (FIRST, SECOND, FIRST, FIRST):
        repeats.add(report)
    assert repeats.has_any()
    assert all_taken(repeats) == [FIRST, SECOND]
    assert not repeats.has_any()


def test_one_that_could_not_be_sent_is_the_next_again():
    repeats = DueRepeats()
    repeats.add(FIRST)
    repeats.add(SECOND)
    assert repeats.take() == FIRST
    repeats.add(FIRST)
    repeats.done(is_still_due=True)
    assert all_taken(repeats) == [FIRST, SECOND]


def test_what_is_asked_for_while_it_is_on_its_way_is_not_due_again_but_what_is_repeated_is():
    repeats = DueRepeats()
    repeats.add(FIRST)
    assert repeats.take() == FIRST
    repeats.ask(FIRST, 0.0)
    assert not repeats.has_any()
    repeats.add(FIRST)
    repeats.done(is_still_due=False)
    assert all_taken(repeats) == [FIRST]


def test_what_was_sent_may_be_asked_for_after_a_minute_and_repeated_at_any_time():
    repeats = DueRepeats()
    repeats.note_sent(FIRST, 100.0)
    repeats.ask(FIRST, 159.9)
    assert all_taken(repeats) == []
    repeats.add(FIRST)
    assert all_taken(repeats) == [FIRST]
    repeats.ask(FIRST, 160.0)
    assert all_taken(repeats) == [FIRST]


def test_of_very_many_the_oldest_are_left_out_and_forgotten():
    many = [Report("default/lifelonglearningjob/job1", version) for version in range(1, 10_002)]
    repeats = DueRepeats()
    for report in many:
        repeats.add(report)
        repeats.note_sent(report, 0.0)
    assert all_taken(repeats) == many[1:]
    for report in many[:2]:
        repeats.ask(report, 1.0)
    assert all_taken(repeats) == many[:1]
