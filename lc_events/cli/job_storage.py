"""The files and objects of a job, as its controller sees them where its credentials can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lc_events.application.audit.archive import Archive
from lc_events.cli.reading import setting, store_path
from lc_events.controller.locations import Locations
from lc_events.controller.world import State, World, dataset_stream
from lc_events.domain.job import JobState
from lc_events.errors import StorageError, StoreError
from lc_events.messages.resources import is_s3
from lc_events.messages.secrets import CREDENTIAL_PLACE, Secrets
from lc_events.runtime.vault import SECRETS_FILE, Vault
from lc_events.settings.programs import StorageSettings
from lc_events.storage import Storage

__all__ = ["JobStorage"]


class JobStorage:
    """Local files below a root; objects by the secrets in the state folder, else by what boto3 finds."""

    def __init__(self, locations: Locations, job: JobState, why_only_boto3: str | None) -> None:
        """`why_only_boto3` says why none of the controller's credentials is used; None if one is."""
        self._locations = locations
        self._job = job
        self._why_only_boto3 = why_only_boto3

    @classmethod
    def of(
        cls, archive: Archive[Any], job: JobState, *, root: Path | None, store: str | None, config: Path | None
    ) -> JobStorage:
        """The storage of a job, with its controller's settings; a `store` that is named has its secrets beside it.

        Raises UsageError for a setting that is wrong.
        """
        settings = StorageSettings.load(root=None if root is None else str(root), config=config)
        known: dict[str, State] = {job.stream: job}
        if (dataset := dataset_stream(job)) is not None:
            known[dataset] = archive.state(dataset)
        world = World()
        world.replace(known)
        secrets, why_only_boto3 = _secrets(_state_folder(store, config) / SECRETS_FILE, known)
        return cls(Locations.of_settings(settings, world, secrets), job, why_only_boto3)

    def storage(self, url: str) -> Storage:
        """Storage of a URL of the job; raises `StorageError`."""
        return self._locations.storage(self._job, url)

    def explain(self, url: str, error: StorageError) -> str:
        """What went wrong, and whose credentials there were, if not the controller's."""
        if self._why_only_boto3 is None or error.missing or not is_s3(url):
            return str(error)
        return f"{error}; this command has boto3's own credentials alone, for {self._why_only_boto3}"


def _state_folder(store: str | None, config: Path | None) -> Path:
    """The state folder that is set, unless a store is named; else the folder of the store."""
    folder = setting("state_dir", config) if store is None else None
    return Path(folder).expanduser() if folder else store_path(store, config).parent


def _secrets(path: Path, streams: Iterable[str]) -> tuple[Callable[[str], Secrets], str | None]:
    """The secrets of resources by stream, and why none of them is a credential."""
    try:
        vault = Vault(path)
    except StoreError as error:
        return lambda _: {}, str(error).partition(";")[0]
    has_any = any(CREDENTIAL_PLACE in vault.get(stream) for stream in streams)
    return vault.get, None if has_any else f"{path} holds none of this job"
