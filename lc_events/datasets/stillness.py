"""Whether a file has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from lc_events.datasets.source import OpenSource, Source, SourceStat

__all__ = ["SETTLE_SECONDS", "Stillness", "same_state"]

SETTLE_SECONDS = 0.02
# FAT keeps times to 2 s, old ext3 and HFS+ to 1 s; what has no fraction of a second comes from one of those.
COARSE_GRAIN_SECONDS = 2.1


class Stillness:
    """Since when a file has been as it is: by a monotonic clock of ours, and by the time stamp it carries."""

    def __init__(self, *, clock: Callable[[], float], wall_ns: Callable[[], int]) -> None:
        self._clock = clock
        self._wall_ns = wall_ns
        self._seen: SourceStat | None = None
        self._since = 0.0

    def look_at(self, source: Source | OpenSource) -> SourceStat:
        """Present state of a file, remembered; raises `UnreadableError`."""
        stat = source.stat()
        if self._seen is None or not same_state(self._seen, stat):
            self._seen, self._since = stat, self._clock()
        return stat

    def seconds(self) -> float:
        """How long the file has been seen as it is; a wall clock may jump and has no say in this."""
        return self._clock() - self._since

    def restless_for(self, stat: SourceStat) -> float:
        """Seconds until the file will have stood still long enough, if more than 0; one touched long ago has."""
        return 0.0 if stat.changed_ns is None else SETTLE_SECONDS - max(self.seconds(), self._age(stat.changed_ns))

    def grain_left(self, stat: SourceStat) -> float:
        """Seconds, if more than 0, in which another write could leave the same time stamp, and so go unseen."""
        if stat.changed_ns is None:
            return 0.0
        grain = COARSE_GRAIN_SECONDS if stat.changed_ns % 1_000_000_000 == 0 else SETTLE_SECONDS
        return grain - self._age(stat.changed_ns)

    def _age(self, changed_ns: int) -> float:
        return abs(self._wall_ns() - changed_ns) / 1e9


def same_state(one: SourceStat, other: SourceStat) -> bool:
    """Whether a file was not written to between two observations, as far as its time stamps tell."""
    return (one.size, one.identity, one.stamp) == (other.size, other.identity, other.stamp)
