"""Where the demo's dataset, samples and models lie: files below a folder, or objects on an S3 server of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from lc_events.demo.s3_server import S3Server
from lc_events.messages.json import JsonObject
from lc_events.messages.secrets import CREDENTIAL
from lc_events.storage import LocalStorage

__all__ = ["LocalPlace", "ObjectPlace", "Place"]

_BUCKET = "digits"


class Place(Protocol):
    """What differs between files and objects."""

    dataset_file: Path
    """Where samples are appended, before `publish`."""

    def environment(self, command: str) -> Mapping[str, str]:
        """What a program must be told besides."""
        ...

    def located(self, resource: JsonObject) -> JsonObject:
        """A manifest whose paths lie here."""
        ...

    def publish(self) -> None:
        """Let the local controller see the samples that were appended."""
        ...

    def model_file(self, url: str) -> Path:
        """A deployed model, as the device opens it."""
        ...


class LocalPlace:
    """Files below `root`, as the manifests have them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.dataset_file = root / "data" / "digits.csv"

    def environment(self, command: str) -> Mapping[str, str]:  # noqa: ARG002 - all alike
        """Nothing."""
        return {}

    def located(self, resource: JsonObject) -> JsonObject:
        """As it is."""
        return resource

    def publish(self) -> None:
        """The local controller watches the file."""

    def model_file(self, url: str) -> Path:
        """The file itself."""
        return self._root / url.lstrip("/")


class ObjectPlace:
    """Objects `s3://digits/…` on a server that lives as long as the place; what is local lies below `folder`."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self._server = server
        self._storage = server.storage()
        self._local = LocalStorage(folder)
        self._folder = folder
        self.dataset_file = folder / "digits.csv"

    @classmethod
    @contextmanager
    def started(cls, folder: Path) -> Iterator[ObjectPlace]:
        """Start the server; UsageError if it is not installed."""
        with S3Server(folder / "server", buckets=[_BUCKET]) as server:
            yield cls(folder, server)

    def environment(self, command: str) -> Mapping[str, str]:
        """The agent has credentials of its own; the local controller gets those of each resource."""
        if command == "run":
            return {"LC_DATASET_SECONDS": "1"}
        if command != "worker":
            return {}
        return {
            "S3_ENDPOINT_URL": f"http://{self._server.endpoint}",
            "ACCESS_KEY_ID": self._server.access_key,
            "SECRET_ACCESS_KEY": self._server.secret_key,
        }

    def located(self, resource: JsonObject) -> JsonObject:
        """With `s3://digits` before its paths, and the annotation that Sedna's GM puts there."""
        metadata, spec = resource["metadata"], resource["spec"]
        if not isinstance(metadata, dict) or not isinstance(spec, dict):
            raise TypeError("a manifest has metadata and spec")
        paths = {name: f"s3://{_BUCKET}{spec[name]}" for name in ("url", "outputDir") if name in spec}
        annotations = {CREDENTIAL: self._server.annotation}
        return {**resource, "metadata": {**metadata, "annotations": annotations}, "spec": {**spec, **paths}}

    def publish(self) -> None:
        """Put the whole dataset again: that is how an object grows."""
        self._storage.write(f"s3://{_BUCKET}/data/digits.csv", self._local.read(f"/{self.dataset_file.name}"))

    def model_file(self, url: str) -> Path:
        """A copy of the object."""
        self._local.write("/device/index.pkl", self._storage.read(url))
        return self._folder / "device" / "index.pkl"
