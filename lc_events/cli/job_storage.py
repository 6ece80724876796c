"""The files and objects of a job, as its controller sees them where its credentials can be read."""

from __future__ import annotations

import os
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
from lc_events.runtime.vault import Vault
from lc_events.storage import LocalStorage, S3Clients, Storage, Storages

__all__ = ["JobStorage"]


class JobStorage:
    """Local files below a root; objects by the secrets in the state folder, else by what boto3 finds."""

    def __init__(self, locations: Locations, job: JobState, alone: str | None) -> None:
        """`alone` says why boto3's own credentials are all there are."""
        self._locations = locations
        self._job = job
        self._alone = alone

    @classmethod
    def of(
        cls, archive: Archive[Any], job: JobState, *, root: Path | None, store: str | None, config: Path | None
    ) -> JobStorage:
        """The storage of a job, with its controller's settings; a `store` that is named has its secrets beside it."""
        known: dict[str, State] = {job.stream: job}
        if (dataset := dataset_stream(job)) is not None:
            known[dataset] = archive.state(dataset)
        world = World()
        world.replace(known)
        folder = setting("state_dir", config) if store is None else None
        path = (Path(folder).expanduser() if folder else store_path(store, config).parent) / "secrets.json"
        secrets, alone = _secrets(path, known)
        below = Path(root or setting("root", config) or os.environ.get("ROOTFS_MOUNT_DIR") or "/")
        ca_file = setting("s3_ca_file", config)
        clients = S3Clients(ca_file=Path(ca_file) if ca_file else None)
        locations = Locations(world, secrets, Storages(LocalStorage(below), clients), below)
        return cls(locations, job, alone)

    def storage(self, url: str) -> Storage:
        """Storage of a URL of the job; raises `StorageError`."""
        return self._locations.storage(self._job, url)

    def explain(self, url: str, error: StorageError) -> str:
        """What went wrong, and whose credentials there were, if not the controller's."""
        if self._alone is None or error.missing or not is_s3(url):
            return str(error)
        return f"{error}; this command has boto3's own credentials alone, for {self._alone}"


def _secrets(path: Path, streams: Iterable[str]) -> tuple[Callable[[str], Secrets], str | None]:
    """The secrets of resources by stream, and why none of them is a credential."""
    try:
        vault = Vault(path)
    except StoreError as error:
        return lambda _: {}, str(error).partition(";")[0]
    has_any = any(CREDENTIAL_PLACE in vault.get(stream) for stream in streams)
    return vault.get, None if has_any else f"{path} holds none of this job"
