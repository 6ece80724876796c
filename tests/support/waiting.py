"""Waiting for a condition with a deadline, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], timeout: float = 10.0, what: str = "") -> T:
    """Return the first true value of `condition`; AssertionError with `what` and the last value after `timeout` s.

    A condition that looks into what is not there yet, as at the state of a job before its first, is not true yet.
    """
    deadline = time.monotonic() + timeout
    while True:
        value: T | LookupError | TypeError
        try:
            value = condition()
        except (LookupError, TypeError) as error:
            value = error
        else:
            if value:
                return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or condition!r}; last value {value!r}")
        time.sleep(0.01)
