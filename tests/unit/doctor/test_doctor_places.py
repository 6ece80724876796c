from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.given import given, gm
from support.sedna import condition

from lc_events.controller.locations import Locations
from lc_events.controller.world import World
from lc_events.doctor.data import check_places
from lc_events.doctor.finding import Level
from lc_events.errors import StorageError

ANNOTATION = "metadata/annotations/sedna.io/credential"


class Servers:
    """S3 servers by endpoint, each with the buckets that it has; `denied` ones tell nobody what they hold."""

    def __init__(self, **buckets):
        self.buckets = buckets
        self.asked = []

    def storage_for(self, _url, credential):
        self.now = credential.endpoint.removeprefix("http://")
        return self

    def exists(self, url):
        self.asked.append((self.now, url))
        buckets = self.buckets[self.now]
        if buckets == "denied":
            raise StorageError(f"cannot read {url} at {self.now}: access is denied", code="denied")
        if url.split("/")[2] not in buckets:
            raise StorageError(f"cannot read {url} at {self.now}: there is no such bucket", code="no_bucket")
        return False


@pytest.fixture
def places(tmp_path):
    """Look for places where these servers are, a live job at each."""

    def look(*places, **buckets):
        world, secrets = World(), {}
        for server in buckets:
            stream = f"default/lifelonglearningjob/{server}"
            job = given(gm(condition("Train", "Waiting"), output_dir=f"/out/{server}")).state
            world.replace({stream: replace(job, stream=stream)})
            secrets[stream] = {ANNOTATION: json.dumps({"s3-endpoint": f"http://{server}"})}
        locations = Locations(world, lambda stream: secrets.get(stream, {}), Servers(**buckets), tmp_path)
        return list(check_places(places, world, locations))

    return look


def test_without_places_nothing_is_wrong(places):
    [finding] = places()
    assert (finding.check, finding.level) == ("model places", Level.OK)


def test_places_that_are_there_are_told_in_one_line(places, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "link").symlink_to("models")
    [finding] = places("/models", "/link", "s3://models/released", one=["models"])
    assert finding == ("model places", Level.OK, "/models, /link, s3://models/released", None)


def test_a_folder_that_is_not_there_and_what_is_none_are_wrong(places, tmp_path):
    (tmp_path / "file").touch()
    missing, file = places("/models", "/file", "s3://models", one=["models"])
    assert (missing.level, missing.says) == (Level.WRONG, f"{tmp_path}/models: No such file or directory")
    assert (file.level, file.says) == (Level.WRONG, f"{tmp_path}/file is not a folder")
    assert "LC_MODEL_PLACES" in missing.advice


def test_a_bucket_need_be_on_one_of_the_servers_only(places):
    [there] = places("s3://models", one=["other"], two=["models"])
    assert there.level is Level.OK
    [missing] = places("s3://models/a", one=["other"], two=[])
    assert (missing.level, missing.says) == (
        Level.WRONG,
        "cannot read s3://models/a/index.pkl at one: there is no such bucket",
    )
    assert "default/one" in missing.advice


def test_keys_that_may_not_list_are_no_fault(places):
    [denied] = places("s3://models", one=[], two="denied")
    assert (denied.level, "s3:ListBucket" in denied.advice) == (Level.NOTE, True)


def test_without_a_job_there_is_no_server_to_ask(places):
    [finding] = places("s3://models")
    assert (finding.level, finding.says) == (Level.OK, "s3://models; S3 is asked once there is a job")
