"""Whether files of datasets can be read, model places are there, and the S3 servers of outputs answer."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence

from lc_events.application.filesystem import network_file_system
from lc_events.controller.locations import Locations
from lc_events.controller.world import World
from lc_events.doctor.finding import Finding, note, ok, wrong
from lc_events.domain.dataset import DatasetState
from lc_events.domain.job import JobState
from lc_events.errors import StorageError
from lc_events.messages.resources import is_s3

__all__ = ["check_datasets", "check_outputs", "check_places"]

_UNREACHABLE = ("unreachable", "slow")
"""Codes of a StorageError that say nothing of bucket, key and credential."""

_NO_MODEL = "index.pkl"
"""Asked for in a bucket; that it is missing is an answer, too."""


def check_datasets(world: World, locations: Locations) -> Iterator[Finding]:
    """Open each dataset's file, where the controller would look for it."""
    live = [dataset for dataset in world.datasets() if dataset.is_live]
    for dataset in live:
        yield _dataset(dataset, locations)
    if not live:
        yield ok("datasets", "there is none")


def _dataset(dataset: DatasetState, locations: Locations) -> Finding:
    check, path = f"dataset {dataset.namespace}/{dataset.name}", locations.path(dataset.url)
    try:
        with locations.source(dataset.stream, dataset.url).open() as source:
            size = source.stat().size
    except StorageError as error:
        if path is not None:
            return wrong(check, str(error), "put the file there, or correct its URL or LC_ROOT")
        if error.code in _UNREACHABLE:
            return wrong(check, str(error), "does the server run? check s3-endpoint and the network")
        return wrong(check, str(error), "check bucket, key and credential")
    says = f"{dataset.url if path is None else path} can be read: {size} bytes, {dataset.records} records counted"
    if dataset.problem is not None:
        return wrong(check, f"{says}, but since {dataset.problem.time}: {dataset.problem.error}", "correct the file")
    kind = None if path is None else network_file_system(path)
    if kind is not None:
        return note(check, f"{says}; {kind} gives no notice of changes", "it is looked at every LC_DATASET_SECONDS")
    return ok(check, says)


def check_outputs(world: World, locations: Locations) -> Iterator[Finding]:
    """Look for one object of each server that jobs write to; that it may be written is not tried."""
    lanes: dict[str, JobState] = {}
    for job in world.jobs():
        if job.is_live and is_s3(job.output_dir):
            lanes.setdefault(f"{locations.lane_of_job(job)} {job.output_dir.split('/')[2]}", job)
    for lane, job in sorted(lanes.items()):
        server, bucket = lane.split(" ")
        try:
            url = f"{job.output_dir}/deploy/index.pkl"
            locations.storage(job, url).exists(url)
        except StorageError as error:
            yield wrong("s3", str(error), f"check the credential of {job.namespace}/{job.name} and the server {server}")
        else:
            yield ok("s3", f"{server} answers for bucket {bucket}")
    if not lanes:
        yield ok("s3", "no job writes there")


def check_places(places: Sequence[str], world: World, locations: Locations) -> Iterator[Finding]:
    """Look for each place of LC_MODEL_PLACES: a folder, or a bucket on one of the servers that jobs have."""
    servers = {locations.lane_of_copy(job, "s3://"): job for job in world.jobs() if job.is_live}
    jobs = list(servers.values())
    found = [finding for place in places if (finding := _place(place, jobs, locations)) is not None]
    yield from found
    if not places:
        yield ok("model places", "none is set: models count below the outputDir of their job alone")
    elif not found:
        unasked = "; S3 is asked once there is a job" if not jobs and any(is_s3(place) for place in places) else ""
        yield ok("model places", f"{', '.join(places)}{unasked}")


def _place(place: str, jobs: Sequence[JobState], locations: Locations) -> Finding | None:
    """What is wrong with a place, if anything is."""
    path = locations.path(place)
    if path is None:
        return _bucket(place, jobs, locations)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        return wrong(
            "model places", f"{path}: {error.strerror}", "make or mount it, or correct LC_MODEL_PLACES or LC_ROOT"
        )
    return None if is_folder else wrong("model places", f"{path} is not a folder", "correct LC_MODEL_PLACES or LC_ROOT")


def _bucket(place: str, jobs: Sequence[JobState], locations: Locations) -> Finding | None:
    """None if one of the servers answers for it: a place is for all jobs, but each has a server of its own."""
    found: list[Finding] = []
    for job in jobs:
        who = f"{job.namespace}/{job.name}"
        try:
            locations.storage(job, place).exists(f"{place}/{_NO_MODEL}")
        except StorageError as error:
            if error.code == "denied":
                advice = (
                    f"perhaps {who} may read there but not list: s3:ListBucket tells a missing object from a denied"
                )
                found.insert(0, note("model places", str(error), advice))
            else:
                found.append(wrong("model places", str(error), f"check the bucket and the credential of {who}"))
        else:
            return None
    return found[0] if found else None
