from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lc_events.mqtt.acknowledgements import Acknowledgements


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_acknowledgements_leave_in_order_of_arrival_and_once(order, given_up):
    acknowledgements = Acknowledgements()
    for delivery in range(12):
        acknowledgements.arrived(delivery, 100 + delivery)
    left: list[int] = []
    for delivery in order:
        left += acknowledgements.given_up(delivery) if delivery in given_up else acknowledgements.done(delivery)
        left += acknowledgements.done(delivery)
    assert left == [100 + delivery for delivery in range(12) if delivery not in given_up]


def test_a_packet_id_used_again_is_not_confirmed_by_the_old_message():
    acknowledgements = Acknowledgements()
    acknowledgements.arrived(1, 7)
    assert acknowledgements.done(1) == [7]
    acknowledgements.arrived(2, 7)
    assert acknowledgements.done(1) == []
    assert acknowledgements.done(2) == [7]


def test_what_was_finished_early_waits_for_those_before_it():
    acknowledgements = Acknowledgements()
    for delivery, mid in ((1, 5), (2, 6), (3, 7)):
        acknowledgements.arrived(delivery, mid)
    assert acknowledgements.done(3) == []
    assert acknowledgements.done(1) == [5]
    assert acknowledgements.done(2) == [6, 7]
