"""What is fetched for a program before it runs, and uploaded after, as Sedna's storage initializer does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from lc_events.domain.pauses import pause_after
from lc_events.errors import StorageError
from lc_events.messages.resources import is_s3
from lc_events.workers.objects import ObjectFolder
from lc_events.workers.roots import URL_SEPARATOR, is_brought_in

__all__ = ["StoppedError", "Transfers"]

_FETCHED = ("TRAIN_DATASET_URL", "TEST_DATASET_URL", "MODEL_URLS", "CLOUD_KB_INDEX")
_PASSING = ("slow", "unreachable", "broken_off", "server", "changed", "no_space", "storage")
"""Trouble that may pass by itself; everything else needs a person, and fails the run."""

_AT_ONCE = 8

_log = logging.getLogger(__name__)


class StoppedError(Exception):
    """The run is to end while it waits for a server."""


class Transfers:
    """The transfers of one run. A server in trouble is tried again after 1 s, 2 s … 60 s, until `stopped` is set.

    `urls` are the order's variables that hold URLs, as the order has them. Methods raise `StorageError` for trouble
    that does not pass by itself, `StoppedError` once stopped.
    """

    def __init__(self, urls: Mapping[str, str], objects: ObjectFolder, stopped: threading.Event) -> None:
        self._urls = urls
        self._objects = objects
        self._stopped = stopped

    @property
    def has_any(self) -> bool:
        """Whether anything of the run is in S3."""
        return any(is_s3(url) for value in self._urls.values() for url in value.split(URL_SEPARATOR))

    def bring_in(self) -> None:
        """Fetch the samples, the models, and the objects that an index names."""
        self._patiently(self._fetch_all)

    def carry_out(self) -> None:
        """Upload what the program wrote below OUTPUT_URL."""
        output = self._urls.get("OUTPUT_URL", "")
        if is_s3(output):
            self._patiently(lambda: _log.info("uploaded %s", ", ".join(self._objects.upload(output)) or "nothing"))

    def _fetch_all(self) -> None:
        for name in _FETCHED:
            for url in filter(is_s3, self._urls.get(name, "").split(URL_SEPARATOR)):
                self._check()
                self._objects.fetch(url)
        original = self._urls.get("ORIGINAL_DATASET_URL", "")
        if is_brought_in("ORIGINAL_DATASET_URL", original):
            self._fetch_indexed(original)

    def _fetch_indexed(self, url: str) -> None:
        """The objects that an index names, each beside the index, where samples name them relative to it.

        A word of a sample that only looks like a file name has no object, and is left out (Sedna takes any word with
        a dot).
        """
        index = self._objects.fetch(url)
        prefix, *names = index.read_text(encoding="utf-8").split("\n")
        wanted = [name for name in dict.fromkeys(names) if name and ".." not in name.split("/") and name[0] != "/"]
        pool = ThreadPoolExecutor(_AT_ONCE, "objects")
        try:
            found = list(pool.map(lambda name: self._is_fetched(prefix + name, index.parent / name), wanted))
        finally:
            pool.shutdown(cancel_futures=True)
        _log.info("%d of the %d names in %s are objects", sum(found), len(wanted), url)

    def _is_fetched(self, url: str, path: Path) -> bool:
        self._check()
        try:
            self._objects.fetch(url, path)
        except StorageError as error:
            if not error.missing:
                raise
            return False
        return True

    def _check(self) -> None:
        if self._stopped.is_set():
            raise StoppedError

    def _patiently(self, transfer: Callable[[], None]) -> None:
        for attempt in count(1):
            try:
                self._check()
                transfer()
            except StorageError as error:
                if error.code not in _PASSING:
                    raise
                pause = pause_after(attempt)
                _log.warning("%s; tried again in %.0f s", error, pause)
                if self._stopped.wait(pause):
                    raise StoppedError from None
            else:
                return
