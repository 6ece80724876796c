"""Notices of changes of local files."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

__all__ = ["FolderWatcher"]

_log = logging.getLogger(__name__)

# By default watchfiles gathers changes for 50 ms before it tells of the first (measured: 64 ms; so: 9 ms).
STEP_MS = 5
# It wakes at every step, which costs 0.7 % of a core; where nothing has changed for a while, half of that will do.
IDLE_STEP_MS = 10
IDLE_SECONDS = 10.0
DEBOUNCE_MS = 50
CHECK_MS = 5000
MOUNTS = Path("/proc/self/mountinfo")
_REMOTE = ("nfs", "cifs", "smb", "9p", "virtiofs", "ceph", "gluster", "lustre", "afs", "fuse")


class FolderWatcher:
    """Tells of changes of files, through one kernel watcher for the folders that hold them and their links' targets.

    `on_change` is called from the watcher's thread with a path as it was given to `watch`: after every change, when
    watching has begun, and when the path leads to another file. It may be called without a cause; it must be quick.
    What is missing is told of once it is there. Of a folder, changes of what lies in it are told, not deeper. Links
    and folders further up are looked at every 5 s.
    """

    def __init__(self, on_change: Callable[[Path], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._paths: set[Path] = set()
        self._reliable: set[Path] = set()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="folder-watcher", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def stop(self) -> None:
        """Stop telling, and wait for the thread to end."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def watch(self, path: Path) -> None:
        """Tell of changes of a file (or in a folder), which need not exist."""
        with self._lock:
            self._paths.add(path)
        self._wake.set()

    def unwatch(self, path: Path) -> None:
        """Tell no more of a path; one that is not watched is no error."""
        with self._lock:
            self._paths.discard(path)
        self._wake.set()

    def works_for(self, path: Path) -> bool:
        """Whether changes are noticed; where not (folder missing, network file system), the path must be polled."""
        with self._lock:
            return path in self._reliable

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        views: dict[Path, _View] = {}
        notify: RustNotify | None = None
        check_at = changed_at = 0.0
        while not self._stopping:
            if self._wake.is_set() or time.monotonic() >= check_at:
                self._wake.clear()
                before = notify
                notify, views = self._renewed(notify, views)
                check_at = time.monotonic() + CHECK_MS / 1000
                if notify is not before and notify is not None:
                    # A folder may have come between the look at it and the watch over it: look once more.
                    check_at = 0.0
                    continue
            if notify is None:
                self._wake.wait(CHECK_MS / 1000)
                continue
            step = STEP_MS if time.monotonic() - changed_at < IDLE_SECONDS else IDLE_STEP_MS
            try:
                changes = notify.watch(DEBOUNCE_MS, step, CHECK_MS, self._wake)
            except WatchfilesRustInternalError as error:
                # It fails for ever after a file name that is not UTF-8, for one.
                _log.warning("notices of changed files begin anew: %s", error)
                views, check_at = {}, 0.0
                self._wake.wait(CHECK_MS / 1000)
                continue
            if isinstance(changes, set):
                changed_at = time.monotonic()
                changed = {name for _, name in changes}
                inside = {os.path.dirname(name) for name in changed}  # noqa: PTH120 - the kernel's notices are strings
                touched = [path for path, view in views.items() if view.is_touched(changed, inside)]
                self._tell(touched)
                if not changed.isdisjoint(_folders(views)):
                    # A folder that was deleted and made again may have the same inode, but is no longer watched.
                    views, check_at = {}, 0.0
                elif any(_view(path) != views[path] for path in touched):
                    check_at = 0.0
            elif self._wake.is_set() and not self._stopping:
                # Woken, it forgets what it had not told yet, so all is told anew; many are waited for together.
                views = {}
                time.sleep(DEBOUNCE_MS / 1000)
        if notify is not None:
            notify.close()

    def _renewed(
        self, notify: RustNotify | None, views: dict[Path, _View]
    ) -> tuple[RustNotify | None, dict[Path, _View]]:
        """Watch what is to be watched now, the new before the old is let go, and tell of paths seen in a new way."""
        with self._lock:
            paths = set(self._paths)
        renewed = {path: _view(path) for path in paths}
        if renewed == views:
            return notify, views
        if (folders := _folders(renewed)) != _folders(views):
            # watch() cannot take on folders while it runs: https://watchfiles.helpmanual.io/api/rust_backend/
            views = {}
            try:
                fresh = RustNotify(sorted(folders), False, False, 0, False, True) if folders else None
            except (OSError, WatchfilesRustInternalError) as error:
                _log.warning("no notices of changed files, they are polled: %s", error)
                fresh, renewed = None, {}
            if notify is not None:
                notify.close()
            notify = fresh
        remote = _remote_mounts()
        with self._lock:
            self._reliable = {path for path, view in renewed.items() if view.is_reliable(remote)}
        self._tell(path for path in paths if renewed.get(path) != views.get(path))
        return notify, renewed

    def _tell(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                self._on_change(path)
            except Exception:  # noqa: BLE001 - the thread outlives a callback
                _log.exception("notice of %s failed", path)


@dataclass(frozen=True, slots=True)
class _View:
    """How a path is seen: the names under which it changes, and the folders, with device and inode, that tell of it.

    Where such a folder is missing, the nearest one above it tells of the `awaited` name.
    """

    names: tuple[str, ...]
    is_folder: bool
    folders: dict[str, tuple[int, int]]
    awaited: tuple[str, ...]

    def is_touched(self, changed: set[str], inside: set[str]) -> bool:
        """Whether one of the changed names is of the path, or lies in it if that is a folder."""
        return not (
            changed.isdisjoint(self.names)
            and changed.isdisjoint(self.folders)
            and changed.isdisjoint(self.awaited)
            and not (self.is_folder and not inside.isdisjoint(self.names))
        )

    def is_reliable(self, remote: tuple[str, ...]) -> bool:
        """Whether all folders are there, on this machine."""
        return not self.awaited and not any(
            folder == mount or folder.startswith(mount.rstrip("/") + "/") for folder in self.folders for mount in remote
        )


def _folders(views: dict[Path, _View]) -> dict[str, tuple[int, int]]:
    return {folder: found for view in views.values() for folder, found in view.folders.items()}


def _view(path: Path) -> _View:
    names = (os.path.abspath(path), os.path.realpath(path))  # noqa: PTH100 - both, with links and without
    is_folder = os.path.isdir(path)  # noqa: PTH112 - never raises
    folders: dict[str, tuple[int, int]] = {}
    awaited = []
    for name in names:
        folder = Path(name if is_folder else os.path.dirname(name))  # noqa: PTH120 - a string, as notices are
        missing = None
        while str(folder) not in folders:
            try:
                found = folder.stat()
            except OSError:
                missing, folder = folder, folder.parent
            else:
                folders[str(folder)] = (found.st_dev, found.st_ino)
        if missing is not None:
            awaited.append(str(missing))
    return _View(names, is_folder, folders, tuple(awaited))


def _remote_mounts() -> tuple[str, ...]:
    """Mount points of file systems whose changes may be made elsewhere, unseen by this kernel (proc(5), mountinfo)."""
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ()
    mounts = [line.split(" ") for line in lines]
    # Blanks and the like stand there as \\040.
    return tuple(
        re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), mount[4])
        for mount in mounts
        if mount[mount.index("-") + 1].startswith(_REMOTE)
    )
