"""Where the URLs of jobs and datasets lead: files below one root, or objects seen with the credential of each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lc_events.controller.lanes import LOCAL
from lc_events.controller.world import World, dataset_stream
from lc_events.datasets.object_source import ObjectSource
from lc_events.datasets.source import LocalSource, Source
from lc_events.domain.decisions import is_trusted_model
from lc_events.domain.job import JobState
from lc_events.errors import RefusedError, StorageError
from lc_events.messages.model_places import NOR_IN_A_PLACE
from lc_events.messages.resources import is_s3
from lc_events.messages.secrets import CREDENTIAL_PLACE, Secrets
from lc_events.storage import Credential, LocalStorage, S3Clients, Storage, Storages, WrittenFile

if TYPE_CHECKING:
    from lc_events.settings.programs import LcSettings, StorageSettings

__all__ = ["Locations"]


class Locations:
    """Storages and sources by who asks. The credential is looked up each time, so that a new one counts at once.

    A job's is its own, else its dataset's if its output lies in the dataset's bucket; a dataset's is its own, else
    that of a live job that learns from it; where none is given, S3 is what boto3 finds for itself. `model_places` are
    URLs below which a model may lie besides the outputDir of its job.
    """

    def __init__(
        self,
        world: World,
        secrets: Callable[[str], Secrets],
        storages: Storages,
        root: Path,
        model_places: tuple[str, ...] = (),
    ) -> None:
        self._world = world
        self._secrets = secrets
        self._storages = storages
        self._root = root
        self._model_places = model_places
        for place in model_places:
            storages.remember(place)

    @classmethod
    def of_settings(
        cls,
        settings: LcSettings | StorageSettings,
        world: World,
        secrets: Callable[[str], Secrets],
        *,
        closed: Collection[Path] = (),
        model_places: tuple[str, ...] = (),
    ) -> Locations:
        """Files and S3 as the settings say; no job's model is read from a `closed` path, and no file written to one."""
        local = LocalStorage(settings.root, closed=closed)
        clients = S3Clients(ca_file=settings.s3_ca_file, timeout=settings.s3_timeout_seconds)
        return cls(world, secrets, Storages(local, clients), settings.root, model_places)

    def path(self, url: str) -> Path | None:
        """The file of a local URL, None for an object."""
        return None if is_s3(url) else self._root / url.lstrip("/")

    def real_place(self, url: str) -> str:
        """The folder behind an output URL, links followed as they were at first; the URL itself if they cannot be."""
        try:
            return self._storages.real_place(url)
        except StorageError:
            return url.rstrip("/")

    def settle(self, output_dir: str) -> None:
        """From now on a job's output goes where its outputDir leads now, and to no link that takes its place later.

        Raises RefusedError with code `conflict` for one that holds what is ours alone, or lies in it, and `invalid` for
        one whose links cannot be followed.
        """
        try:
            self._storages.remember(output_dir)
        except StorageError as error:
            words = f"outputDir {output_dir} cannot be used: {error}"
            raise RefusedError(words, code="conflict" if error.code == "conflict" else "invalid") from error

    def source(self, dataset: str, url: str) -> Source:
        """Where a dataset (its stream) is read from."""
        path = self.path(url)
        if path is not None:
            return LocalSource(path)
        return ObjectSource(lambda: self._storages.s3(self._of_dataset(dataset)).open_object(url))

    def storage(self, job: JobState, url: str) -> Storage:
        """Storage of a URL of a job; raises `StorageError`."""
        return self._storages.storage_for(url, self._of_job(job) if is_s3(url) else None)

    def copy(self, job: JobState, source: str, target: str) -> WrittenFile:
        """Copy a model of a job; StorageError `outside` for one that lies elsewhere than models may, links followed."""
        if not is_trusted_model(source, job.output_dir, self._model_places):
            words = f"{source} lies neither below the job's outputDir {job.output_dir} {NOR_IN_A_PLACE}"
            raise StorageError(words, code="outside")
        allowed = (job.output_dir, *self._model_places)
        return self._storages.copy(
            source,
            target,
            below=tuple(folder for folder in allowed if is_s3(folder) == is_s3(source)),
            within=job.output_dir,
            credential=self._of_job(job) if is_s3(source) or is_s3(target) else None,
        )

    def lane_of_job(self, job: JobState) -> str:
        """What a job's files share with those of other jobs: the disk, or a server."""
        return _lane(job.output_dir, lambda: self._of_job(job))

    def lane_of_copy(self, job: JobState, source: str) -> str:
        """The same of copying a model: one that comes from a server takes as long as that server."""
        return _lane(source if is_s3(source) else job.output_dir, lambda: self._of_job(job))

    def lane_of_dataset(self, dataset: str, url: str) -> str:
        """As `lane_of_job`, of a dataset's file."""
        return _lane(url, lambda: self._of_dataset(dataset))

    def _of_job(self, job: JobState) -> Credential:
        own = self._own(job.stream)
        stream = dataset_stream(job)
        dataset = self._world.dataset(stream)
        if (
            own is None
            and stream is not None
            and dataset is not None
            and _bucket(dataset.url) == _bucket(job.output_dir)
        ):
            own = self._own(stream)
        return own or Credential()

    def _of_dataset(self, dataset: str) -> Credential:
        for stream in (dataset, *sorted(self._world.jobs_of(dataset))):
            if (found := self._own(stream)) is not None:
                return found
        return Credential()

    def _own(self, stream: str) -> Credential | None:
        text = self._secrets(stream).get(CREDENTIAL_PLACE)
        return None if text is None else Credential.from_annotation(text)


def _bucket(url: str) -> str:
    return urlsplit(url).netloc


def _lane(url: str, credential: Callable[[], Credential]) -> str:
    if not is_s3(url):
        return LOCAL
    try:
        return credential().endpoint or "s3"
    except StorageError:
        return "s3"
