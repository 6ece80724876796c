"""The processes of one run: started as a session of their own, found again by a mark, ended without leftovers.

Linux only: a process is known by its start time, its session and its environment in /proc.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lc_events.workers.environment import RUN_FOLDER_VARIABLE

__all__ = ["ProcessIdentity", "end", "identify", "members"]

_PROC = Path("/proc")
_BOOT = _PROC / "sys/kernel/random/boot_id"
_POLL_SECONDS = 0.05
_UNKILLABLE_SECONDS = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, never another: its number may be given away later, but not with this start time in this boot."""

    pid: int
    started: int
    boot: str


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    session: int
    started: int


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a living process or a zombie; None if there is none."""
    stat = _stat(pid)
    return ProcessIdentity(pid, stat.started, _BOOT.read_text().strip()) if stat else None


def members(run_folder: Path, leader: ProcessIdentity | None) -> list[int]:
    """The living processes of a run: those of its leader's session, and those that carry its mark.

    The session finds a program that overwrote its environment; the mark finds one that left the session, or whose agent
    died before it could write down the leader.
    """
    mark = f"{RUN_FOLDER_VARIABLE}={run_folder}".encode()
    session = leader.pid if leader and _session_is_ours(leader) else None
    return [pid for pid, stat in _living() if (session is not None and stat.session == session) or _has_mark(pid, mark)]


def end(run_folder: Path, leader: ProcessIdentity | None, *, grace_seconds: float) -> None:
    """Send SIGTERM to all of a run, SIGKILL after `grace_seconds`, and return when none of them is left.

    With a grace of 0 there is no SIGTERM. What not even SIGKILL ends (it waits for a device) is logged and left.
    """
    deadline = time.monotonic() + grace_seconds
    told: set[int] = set()
    while found := members(run_folder, leader):
        if time.monotonic() > deadline + _UNKILLABLE_SECONDS:
            _log.error("processes %s of %s survive SIGKILL", found, run_folder.name)
            return
        if time.monotonic() < deadline:
            _signal([pid for pid in found if pid not in told], signal.SIGTERM)
            told.update(found)
        else:
            _signal(found, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _session_is_ours(leader: ProcessIdentity) -> bool:
    """No other session gets this number as long as any process of it lives, the leader or another one."""
    if leader.boot != _BOOT.read_text().strip():
        return False
    stat = _stat(leader.pid)
    return stat is None or stat.started == leader.started


def _living() -> Iterator[tuple[int, _Stat]]:
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (stat := _stat(int(entry.name))) and stat.state not in "ZX":
            yield int(entry.name), stat


def _stat(pid: int) -> _Stat | None:
    """Fields 3, 6 and 22 of proc(5); the name in field 2 may hold anything, so they are counted from its last `)`."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(fields[0], int(fields[3]), int(fields[19]))


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
