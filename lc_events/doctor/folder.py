"""The state folder and the disks: who uses it, who may read it, is there room, is the store on a local disk."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from lc_events.application.filesystem import network_file_system
from lc_events.controller.quarantine import Quarantine
from lc_events.doctor.finding import Finding, note, ok, skipped, wrong
from lc_events.runtime.vault import SECRETS_FILE

__all__ = ["check_disks", "check_file_system", "check_folder", "check_quarantine", "holder"]

_SECRET = (SECRETS_FILE, "broker.env", "broker.toml")
_LITTLE, _VERY_LITTLE = 1 << 30, 100 << 20


def holder(folder: Path) -> str | None:
    """The process that uses a state folder, None if none does: its lock is tried and given back at once.

    Where nothing can be locked no program runs either: it would not start.
    """
    try:
        descriptor = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def check_folder(folder: Path, process: str | None) -> Iterator[Finding]:
    """Which process uses it, and whether its secrets are kept from others."""
    check = "state folder"
    try:
        owner = folder.stat().st_uid
    except OSError as error:
        yield note(check, f"{folder}: {error.strerror}", "the controller makes it when it starts: lc-events run")
        return
    open_ones = [path for path in map(folder.joinpath, _SECRET) if path.exists() and path.stat().st_mode & 0o077]
    for path in open_ones:
        mode = stat.S_IMODE(path.stat().st_mode)
        yield wrong(check, f"{path} holds secrets and others may read it (mode {mode:04o})", f"chmod 600 {path}")
    if os.geteuid() not in (0, owner):
        says = (
            f"{folder} belongs to user {owner}, and this is user {os.geteuid()}: the controller may have other rights"
        )
        yield note(check, says, "run doctor as the controller's user")
    elif not open_ones:
        yield ok(
            check, f"{folder} is " + ("free: no process uses it" if process is None else f"used by process {process}")
        )


def check_disks(folders: Iterable[Path]) -> Iterator[Finding]:
    """Room on each file system that something is written to."""
    seen: set[int] = set()
    for folder in folders:
        there = next((path for path in (folder, *folder.absolute().parents) if path.exists()), Path("/"))
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield _room(there)


def _room(path: Path) -> Finding:
    disk = os.statvfs(path)
    free, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    says = f"{_size(free)} of {_size(whole)} are free below {path}"
    if disk.f_flag & os.ST_RDONLY:
        return wrong("disk", f"{path} is read-only", "mount it for writing: mount -o remount,rw")
    if disk.f_files and not disk.f_favail:
        return wrong("disk", f"{path} has no inode left for another file", "remove files there")
    if free < _VERY_LITTLE:
        return wrong("disk", says, "make room: without any, nothing is taken in any more (and nothing is lost)")
    return ok("disk", says) if free >= _LITTLE else note("disk", says, "make room soon")


def check_file_system(store: Path) -> Iterator[Finding]:
    """Whether the store lies on a disk of this machine."""
    kind = network_file_system(store)
    if kind is None:
        yield ok("file system", f"{store.parent} is on this machine")
    else:
        says = f"the store lies on a network file system ({kind}), where SQLite loses data"
        yield wrong("file system", says, "move it to a local disk, and set LC_STATE_DIR or LC_STORE")


def check_quarantine(folder: Path) -> Iterator[Finding]:
    """How much of what was refused is kept, by code, and how much is not."""
    if not folder.exists():
        yield ok("quarantine", "nothing was refused")
        return
    if not os.access(folder, os.R_OK | os.X_OK):
        yield skipped("quarantine", f"{folder} may not be read by this user")
        return
    quarantine = Quarantine(folder)
    counts, dropped = quarantine.counts(), quarantine.dropped()
    if counts:
        by_code = ", ".join(f"{code} {count}" for code, count in counts.most_common(8))
        kept = "1 refused message is" if counts.total() == 1 else f"{counts.total()} refused messages are"
        older = f"; {dropped} older ones were dropped" if dropped else ""
        yield note("quarantine", f"{kept} kept: {by_code}{older}", "lc-events quarantine list")
    else:
        yield ok("quarantine", "nothing that was refused is kept")


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
