"""The share of samples that train: exact in decimals, whatever the batches they come in."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["train_share"]


def train_share(probability: float, before: int, arrived: int) -> int:
    """How many of `arrived` samples train, `before` having arrived since the probability was set.

    The total is floor(p * n) of the number as written (0.29 * 100 is 29), so each batch gets the difference; Sedna
    floors per batch and by binary floats, and data that trickles in one by one never trains there.
    """
    p = Decimal(repr(float(probability)))
    return int(p * (before + arrived)) - int(p * before)
