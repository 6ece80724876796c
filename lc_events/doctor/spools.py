"""Whether the spools still hold the samples that jobs need, as they were counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from lc_events.application.journal import Journal
from lc_events.controller.lost_samples import WHAT_TO_DO
from lc_events.controller.world import World
from lc_events.datasets.ranges import Range, merged
from lc_events.datasets.spool import Spool
from lc_events.doctor.finding import Finding, ok, skipped, wrong
from lc_events.errors import StorageError

__all__ = ["check_spools"]

_ADVICE = f"the controller reads them again from the dataset's file if that still holds them; else {WHAT_TO_DO}"


def check_spools(world: World, journal: Journal, folder: Path) -> Iterator[Finding]:
    """Look for what live jobs are still to be given; `folder` holds a folder for each dataset."""
    try:
        lost = _lost(world, folder)
        if lost:
            # A controller that runs may have let go of them since `world` was read: then nobody needs them any more.
            world.rebuild(journal, [job.stream for job in world.jobs() if job.is_live])
            lost = _lost(world, folder)
    except StorageError as error:
        yield skipped("spool", str(error))
        return
    for spool, count in sorted(lost.items()):
        yield wrong("spool", f"{count} samples that jobs need are missing from {spool}", _ADVICE)
    if not lost:
        yield ok("spool", "all samples that jobs need are there")


def _lost(world: World, folder: Path) -> dict[Path, int]:
    """How many samples each spool lacks."""
    found: defaultdict[Path, list[Range]] = defaultdict(list)
    for job in world.jobs():
        for dataset in {source.dataset for source in job.sources} if job.is_live else ():
            spool = Spool(folder / job.namespace / dataset)
            for first, last in job.needed_of(dataset):
                spool.find_damage(first, last)
                found[spool.folder] += spool.lost(first, last)
    # Jobs share samples.
    return {spool: sum(last - first for first, last in merged(gaps)) for spool, gaps in found.items() if gaps}
