from __future__ import annotations

from decimal import Decimal
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.domain.split import train_share

probabilities = st.floats(0, 1) | st.decimals(0, 1, places=3).map(float)


@pytest.mark.parametrize(
    ("probability", "samples", "train"),
    [
        (0.7, 10, 7),
        (0.29, 100, 29),
        (0.57, 100, 57),
        (0.8, 10, 8),
        (0, 50, 0),
        (1, 50, 50),
        (1e-7, 10**7, 1),
        (0.1, 9, 0),
    ],
)
def test_the_share_is_that_of_the_decimal_number_as_written(probability: float, samples: int, train: int):
    assert train_share(probability, 0, samples) == train


@given(probabilities, st.lists(st.integers(0, 10**6), max_size=30))
def test_the_total_does_not_depend_on_the_batches(probability: float, batches: list[int]):
    before = train = 0
    for batch in batches:
        share = train_share(probability, before, batch)
        assert 0 <= share <= batch
        before, train = before + batch, train + share
    assert train == floor(Decimal(repr(probability)) * before)


def test_data_that_trickles_in_one_by_one_trains():
    assert sum(train_share(0.8, before, 1) for before in range(10)) == 8
