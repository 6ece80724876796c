from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.given import facts, gm
from support.given import given as given_job
from support.sedna import condition, dataset_resource, down
from support.sedna import output as reported

from lc_events.controller.lanes import LOCAL
from lc_events.controller.locations import Locations
from lc_events.controller.world import World
from lc_events.datasets import LocalSource, ObjectSource
from lc_events.domain.dataset import DatasetState, receive_dataset_message
from lc_events.errors import RefusedError, StorageError
from lc_events.messages.resources import is_s3
from lc_events.storage import Credential, LocalStorage, WrittenFile
from lc_events.storage.s3 import S3Storage

WAITING = condition("Train", "Waiting", "2024-01-01T00:00:00Z")
DATASET, JOB = "default/dataset/ds", "default/lifelonglearningjob/job1"
KEY = "metadata/annotations/sedna.io/credential"


class Storages:
    """Notes who was asked for, and with which credential."""

    def __init__(self, local):
        self.local = local
        self.asked: list[Credential | None] = []

    def storage_for(self, _url, credential=None):
        self.asked.append(credential)
        return self.local

    def remember(self, folder):
        if not is_s3(folder):
            self.local.remember(folder)

    def real_place(self, folder):
        return folder.rstrip("/") if is_s3(folder) else str(self.local.real_place(folder))

    def s3(self, credential=None):
        self.asked.append(credential)
        return self

    def copy(self, source, target, **allowed):
        self.copied = (source, target, allowed)
        return WrittenFile(target, 1, "0" * 64)

    def open_object(self, url):
        raise StorageError(f"{url}: missing", missing=True)


class Scene:
    """A job and a dataset, each with or without a credential of its own."""

    def __init__(self, folder, *, dataset="s3://bkt/data/ds.txt", output="s3://bkt/out", places=()):
        self.secrets: dict[str, dict[str, str]] = {}
        self.world = World()
        resource = dataset_resource(url=dataset)
        message = down(resource, kind="dataset", name="ds")
        self.world.replace({DATASET: receive_dataset_message(DatasetState(DATASET), message, "2024")[1]})
        self.job = given_job(gm(WAITING, output_dir=output)).state
        self.world.replace({JOB: self.job})
        self.storages = Storages(LocalStorage(folder))
        self.locations = Locations(self.world, self.secrets_of, self.storages, folder, places)
        self.dataset, self.output = dataset, output

    def secrets_of(self, stream):
        return self.secrets.get(stream, {})

    def has(self, stream, name):
        self.secrets[stream] = {
            KEY: json.dumps({"s3-endpoint": f"{name}:9000", "ACCESS_KEY_ID": name, "SECRET_ACCESS_KEY": "x"})
        }
        return self

    @property
    def of_job(self):
        self.locations.storage(self.job, f"{self.output}/x")
        return self.storages.asked.pop().access_key

    @property
    def of_dataset(self):
        with pytest.raises(StorageError):
            self.locations.source(DATASET, self.dataset).stat()
        return self.storages.asked.pop().access_key


def test_each_has_its_own_credential(tmp_path):
    scene = Scene(tmp_path).has(DATASET, "of-dataset").has(JOB, "of-job")
    assert (scene.of_job, scene.of_dataset) == ("of-job", "of-dataset")
    assert scene.locations.lane_of_job(scene.job) == "https://of-job:9000"
    assert scene.locations.lane_of_dataset(DATASET, scene.dataset) == "https://of-dataset:9000"


def test_a_job_without_one_has_its_datasets_in_the_same_bucket_only(tmp_path):
    assert Scene(tmp_path).has(DATASET, "of-dataset").of_job == "of-dataset"
    assert Scene(tmp_path, output="s3://other/out").has(DATASET, "of-dataset").of_job is None
    assert Scene(tmp_path, dataset="/data/ds.txt").has(DATASET, "of-dataset").of_job is None


def test_a_dataset_without_one_has_that_of_its_job(tmp_path):
    assert Scene(tmp_path).has(JOB, "of-job").of_dataset == "of-job"
    assert Scene(tmp_path).of_dataset is None


def test_a_new_credential_counts_at_once(tmp_path):
    scene = Scene(tmp_path).has(DATASET, "old")
    source = scene.locations.source(DATASET, scene.dataset)
    scene.has(DATASET, "new")
    with pytest.raises(StorageError):
        source.stat()
    assert scene.storages.asked == [Credential("https://new:9000", "new", "x")]


def test_local_urls_need_no_credential_even_a_broken_one(tmp_path):
    scene = Scene(tmp_path, dataset="/data/ds.txt", output="/out")
    scene.secrets = {DATASET: {KEY: "broken"}, JOB: {KEY: "broken"}}
    assert scene.locations.storage(scene.job, "/out/x") is scene.storages.local
    assert scene.storages.asked == [None]
    assert isinstance(scene.locations.source(DATASET, "/data/ds.txt"), LocalSource)
    assert scene.locations.path("/data/ds.txt") == tmp_path / "data/ds.txt"
    assert scene.locations.lane_of_job(scene.job) == scene.locations.lane_of_dataset(DATASET, "/data/ds.txt") == LOCAL


def test_a_broken_credential_is_an_error_of_the_request_and_not_of_the_lane(tmp_path):
    scene = Scene(tmp_path)
    scene.secrets = {DATASET: {KEY: "broken"}, JOB: {KEY: "broken"}}
    assert scene.locations.lane_of_job(scene.job) == "s3"
    source = scene.locations.source(DATASET, scene.dataset)
    assert isinstance(source, ObjectSource)
    assert scene.locations.path(scene.dataset) is None
    with pytest.raises(StorageError) as caught:
        source.stat()
    assert caught.value.code == "credential"
    with pytest.raises(StorageError) as caught:
        scene.locations.storage(scene.job, "s3://bkt/out/x")
    assert caught.value.code == "credential"


class AnsweredError(Exception):
    """The storage asked its server: by its URL the object may be copied."""


class NoClient:
    """An S3 client that gets no further than to its first request."""

    class exceptions:  # noqa: N801 - boto3's name
        ClientError = KeyError

    def head_object(self, **_named):
        raise AnsweredError


PLACES = ("/models", "s3://models/released", "/more")


@pytest.mark.parametrize(
    ("source", "output", "below"),
    [
        ("s3://bkt/out/m", "s3://bkt/out", ("s3://bkt/out", "s3://models/released")),
        ("s3://models/released/m", "s3://bkt/out", ("s3://bkt/out", "s3://models/released")),
        ("s3://models/released/m", "/out", ("s3://models/released",)),
        ("/models/m", "s3://bkt/out", ("/models", "/more")),
        ("/more/m", "/out", ("/out", "/models", "/more")),
    ],
)
def test_a_model_in_a_place_is_copied_with_the_credential_of_its_job(tmp_path, source, output, below):
    scene = Scene(tmp_path, output=output, places=PLACES).has(JOB, "of-job")
    target = f"{output}/deploy/index.pkl"
    scene.locations.copy(scene.job, source, target)
    credential = None if source == "/more/m" else Credential("https://of-job:9000", "of-job", "x")
    allowed = {"below": below, "within": output, "credential": credential}
    assert scene.storages.copied == (source, target, allowed)


@pytest.mark.parametrize("output", ["s3://bkt/out", "/out"])
@pytest.mark.parametrize("source", ["s3://models/m", "s3://bkt/outer/m", "/outer/m", "/models2/m", "/etc/shadow", "m"])
def test_a_model_elsewhere_is_refused_in_words(tmp_path, source, output):
    for places in ((), PLACES):
        scene = Scene(tmp_path, output=output, places=places)
        with pytest.raises(StorageError, match=f"outputDir {output} nor in a place that LC_MODEL_PLACES") as caught:
            scene.locations.copy(scene.job, source, f"{output}/deploy/index.pkl")
        assert caught.value.code == "outside"


NAMES = ("a", "..", ".", "", "%2e%2e", "%252E.", "m", "b" * 4096)


@given(
    st.sampled_from(["s3://bkt/out", "s3://models/released", "s3://bkt", "/out", "/models", "/more", ""]),
    st.lists(st.sampled_from(NAMES), max_size=4),
    st.sampled_from(["s3://bkt/out", "/out"]),
    st.sampled_from([(), PLACES]),
)
def test_what_counts_for_an_evaluation_is_what_may_be_deployed(place, path, output, places):
    """Up to what only the storage can say: links, and whether anything is there."""
    url = "/".join([place, *path])
    stand = condition("Train", "Completed", "t1", reported(url)), condition("Eval", "Waiting", "t2")
    job = given_job(gm(*stand, at=facts(places=places), output_dir=output)).state
    scene = Scene(Path("/nowhere"), output=output, places=places)
    if job.verdict.reason == "no_model":
        with pytest.raises(StorageError) as caught:
            scene.locations.copy(job, url, f"{output}/deploy/index.pkl")
        assert caught.value.code == "outside"
        return
    scene.locations.copy(job, url, f"{output}/deploy/index.pkl")
    if is_s3(url):
        with pytest.raises(AnsweredError):
            S3Storage(NoClient(), server="").copy(url, "s3://bkt/deploy", below=scene.storages.copied[2]["below"])


def test_a_copy_goes_where_it_may_have_to_wait(tmp_path):
    local = Scene(tmp_path, output="/out").has(JOB, "of-job")
    assert local.locations.lane_of_copy(local.job, "/models/m") == LOCAL
    assert local.locations.lane_of_copy(local.job, "s3://models/m") == "https://of-job:9000"
    remote = Scene(tmp_path).has(JOB, "of-job")
    assert remote.locations.lane_of_copy(remote.job, "/models/m") == "https://of-job:9000"


def test_a_local_place_stays_the_folder_that_it_was_at_the_start(tmp_path):
    (tmp_path / "models").mkdir()
    scene = Scene(tmp_path, places=PLACES)
    (tmp_path / "models").rmdir()
    (tmp_path / "models").symlink_to("/etc")
    assert scene.storages.local.real_place("/models") == tmp_path / "models"


def test_an_output_folder_stays_the_one_that_it_was_when_it_was_settled(tmp_path):
    locations = Scene(tmp_path).locations
    locations.settle("/out")
    (tmp_path / "out").symlink_to("/etc")
    assert locations.real_place("/out") == str(tmp_path / "out")
    assert locations.real_place("/out/../out") == str(tmp_path / "out")
    locations.settle("/out")
    assert locations.real_place("/out") == "/etc"
    locations.settle("s3://bkt/out/")
    assert locations.real_place("s3://bkt/out/") == "s3://bkt/out"


@pytest.mark.parametrize(("output", "words"), [("/", "holds"), ("/state/x", "lies in"), ("/state", "is")])
def test_an_output_folder_that_opens_what_is_the_controllers_own_is_a_conflict(tmp_path, output, words):
    scene = Scene(tmp_path)
    scene.storages.local = LocalStorage(tmp_path, closed=[tmp_path / "state"])
    with pytest.raises(RefusedError, match=f"^outputDir {output} cannot be used: .* {words} {tmp_path}") as caught:
        scene.locations.settle(output)
    assert caught.value.code == "conflict"


class Changing(LocalStorage):
    """A file system on which a link changes whenever it is followed."""

    def remember(self, url):
        raise StorageError(f"cannot follow the links of {url}", code="outside")


def test_an_output_folder_whose_links_cannot_be_followed_is_invalid(tmp_path):
    scene = Scene(tmp_path)
    scene.storages.local = Changing(tmp_path)
    with pytest.raises(RefusedError, match="outputDir /out cannot be used: cannot follow the links") as caught:
        scene.locations.settle("/out")
    assert caught.value.code == "invalid"
