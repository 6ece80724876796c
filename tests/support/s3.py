"""Objects as tests look at them, and storage behind any endpoint."""

from __future__ import annotations

import json
from typing import Any

from lc_events.storage import Credential, S3Clients
from lc_events.storage.s3 import S3Storage
from support.played_gm import PlayedGm
from support.sedna import DATASET, dataset_resource

_clients: dict[float, S3Clients] = {}


def storage_at(endpoint: str, *, timeout: float = 20.0, **keys: str) -> S3Storage:
    """Storage behind an endpoint HOST:PORT that checks no keys, or of these keys."""
    given = {"access_key": "any", "secret_key": "any-secret", **keys}
    clients = _clients.setdefault(timeout, S3Clients(timeout=timeout))
    return clients.storage(Credential(f"http://{endpoint}", **given))


def annotations(endpoint: str, access_key: str = "any", secret_key: str = "any-secret") -> dict[str, str]:
    """The annotations of a resource whose credential this is."""
    credential = {
        "s3-endpoint": endpoint,
        "s3-usehttps": "0",
        "ACCESS_KEY_ID": access_key,
        "SECRET_ACCESS_KEY": secret_key,
    }
    return {"sedna.io/credential": json.dumps(credential)}


def s3_dataset(gm: PlayedGm, url: str, given: dict[str, str] | None, *, name: str = "ds", format_: str = "txt") -> None:
    """Insert a dataset with these annotations."""
    resource = dataset_resource(name=name, url=url, format_=format_)
    if given is not None:
        resource["metadata"]["annotations"] = given
    gm.send(DATASET, name, resource)


def objects(storage: S3Storage, url: str) -> dict[str, str]:
    """All objects below a URL with their text, as the recordings list them."""
    return {found: b"".join(storage.read(found)).decode() for found in storage.list(url)}


def open_uploads(storage: S3Storage, bucket: str) -> list[str]:
    """Keys of uploads in parts that were begun and not ended."""
    found = storage._client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return [upload["Key"] for upload in found]


def train_ready_at(output_dir: str, round_: int, *, format_: str = "txt", index: bool = False) -> dict[str, Any]:
    """The content of a Train/Ready report of a job with this output; with `index` of a txt dataset in S3."""
    folder = f"{output_dir}/data/train/{round_}"
    given = {"dataURL": f"{folder}/data.{format_}"} | ({"dataIndexURL": f"{folder}/dataIndex.txt"} if index else {})
    given["outputDir"] = f"{output_dir}/train/{round_}"
    return {"phase": "Train", "status": "Ready", "input": given, "output": None}
