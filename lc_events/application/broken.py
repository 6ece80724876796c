"""What a check found wrong: the first version of a stream that is not as it was written, and why."""

from __future__ import annotations

from lc_events.errors import IntegrityError

__all__ = ["DEFECTS", "BrokenError", "misfit"]

DEFECTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What folding an event raises, or deciding on it, that has another shape than any that we write."""


class BrokenError(IntegrityError):
    """The history of `stream` is broken at `version`; `fault` says what is wrong there."""

    def __init__(self, stream: str, version: int, fault: str) -> None:
        super().__init__(f"{stream} version {version}: {fault}")
        self.stream = stream
        self.version = version
        self.fault = fault


def misfit(stream: str, version: int, error: Exception) -> BrokenError:
    """One of the `DEFECTS`, as what it says of the history."""
    return BrokenError(stream, version, f"it does not fit the history before it: {error!r:.200}")
