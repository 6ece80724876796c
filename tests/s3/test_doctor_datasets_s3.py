from __future__ import annotations

import pytest
from support.ports import free_port
from support.s3 import annotations
from support.sedna import DATASET, dataset_resource, down

from lc_events.controller.locations import Locations
from lc_events.controller.world import World
from lc_events.doctor.data import check_datasets
from lc_events.doctor.finding import Level
from lc_events.domain.dataset import DatasetState, receive_dataset_message
from lc_events.storage import LocalStorage, S3Clients, Storages

STREAM = "default/dataset/ds"


@pytest.fixture
def examined(tmp_path):
    """What is found of a dataset in this bucket of the server at this endpoint."""

    def find(endpoint, bucket):
        world = World()
        message = down(dataset_resource(url=f"s3://{bucket}/ds.txt"), kind=DATASET, name="ds")
        world.replace(
            {STREAM: receive_dataset_message(DatasetState(STREAM), message, "2024-01-01T00:00:00.000000Z")[1]}
        )
        secret = {"metadata/annotations/sedna.io/credential": annotations(endpoint)["sedna.io/credential"]}
        storages = Storages(LocalStorage(tmp_path), S3Clients(timeout=2.0))
        [finding] = check_datasets(world, Locations(world, lambda _: secret, storages, tmp_path))
        assert finding.level is Level.WRONG
        return finding

    return find


def test_a_server_that_cannot_be_reached_is_no_matter_of_bucket_and_key(examined):
    finding = examined(f"127.0.0.1:{free_port()}", "bkt")
    assert "the server cannot be reached" in finding.says
    assert finding.advice == "does the server run? check s3-endpoint and the network"


def test_a_bucket_that_is_not_there_is_a_matter_of_bucket_and_key(examined, moto_endpoint):
    assert examined(moto_endpoint, "none").advice == "check bucket, key and credential"
