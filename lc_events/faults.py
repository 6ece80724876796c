"""A switch for tests: the process kills itself at a named step of the flow, as a power cut would.

`LC_TEST_CRASH=STEP` or `STEP:N` (at the N-th time) in the environment turns it on; without it nothing happens.
"""

from __future__ import annotations

import os
import signal

__all__ = ["STEPS", "reach"]

STEPS = (
    "message-received",
    "events-decided",
    "events-committed",
    "message-acknowledged",
    "spool-appended",
    "spool-synced",
    "spool-data-restored",
    "spool-index-restored",
    "samples-seen",
    "file-begun",
    "file-written",
    "file-renamed",
    "folder-synced",
    "effect-done",
    "effect-recorded",
    "report-sent",
    "done-sent",
    "event-sent",
    "latest-sent",
    "position-noted",
    "position-saved",
    "secrets-written",
    "secrets-replaced",
    "quarantine-written",
)
"""Every step that the running controller passes; each is named where it has just been done."""

_step, _, _count = os.environ.get("LC_TEST_CRASH", "").partition(":")
_left = int(_count or 1)


def reach(step: str) -> None:
    """The flow has come to a step."""
    if step == _step:
        _count_down()


def _count_down() -> None:
    global _left  # noqa: PLW0603 - one process, one fault
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
