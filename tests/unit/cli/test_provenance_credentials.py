"""Whose credentials compare a round's objects: the controller's where they can be read, else boto3's own."""

from __future__ import annotations

import json

import pytest
from support.given import written
from support.ports import free_port
from support.rounds import Rounds
from support.sedna import DATASET, dataset_resource, down
from support.stores import stored

from lc_events.domain.dataset import DatasetState, receive_dataset_message

JOB = "default/lifelonglearningjob/job1"
DATASET_STREAM = "default/dataset/ds"


@pytest.fixture
def check(tmp_path, monkeypatch, lc_events):
    """Compare round 1 of a job whose files lie in S3; the details of its train file, and all that was printed."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    rounds = Rounds(output_dir="s3://bkt/out").arrive(9)
    message = down(dataset_resource(url="s3://bkt/ds.txt"), kind=DATASET, name="ds")
    dataset, _ = receive_dataset_message(DatasetState(DATASET_STREAM), message, "2024-01-01T00:00:00.000000Z")
    rounds.then(written(rounds.wait().time))
    stored(tmp_path / "events.db", rounds.history().events, dataset)

    def run(*options):
        result = lc_events("provenance", "job1", "--round", 1, "--check", "-o", "json", *options)
        assert result.code == 3
        [train] = [file for file in json.loads(result.out)["checked"] if file["what"] == "train"]
        assert train["state"] == "unreadable"
        return train["detail"], result.out + result.err

    return run


def keep(folder, stream):
    """A credential as a controller keeps it; the name of its server, where nobody listens."""
    server = f"127.0.0.1:{free_port()}"
    credential = {"s3-endpoint": f"http://{server}", "ACCESS_KEY_ID": "AKIA7", "SECRET_ACCESS_KEY": "hunter2"}
    folder.mkdir(exist_ok=True)
    secrets = {stream: {"metadata/annotations/sedna.io/credential": json.dumps(credential)}}
    (folder / "secrets.json").write_text(json.dumps(secrets))
    return server


@pytest.mark.parametrize("stream", [JOB, DATASET_STREAM])
def test_the_controllers_own_credential_is_used(check, tmp_path, stream):
    server = keep(tmp_path, stream)
    detail, printed = check("--store", tmp_path)
    assert detail == f"cannot read s3://bkt/out/data/train/1/data.txt at {server}: the server cannot be reached"
    assert "hunter2" not in printed


def test_a_store_elsewhere_has_its_secrets_in_the_state_folder(check, tmp_path, monkeypatch):
    server = keep(tmp_path / "state", JOB)
    monkeypatch.setenv("LC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("LC_STORE", str(tmp_path / "events.db"))
    assert server in check()[0]


def test_without_it_the_words_say_whose_credentials_are_used(check, tmp_path):
    alone = "this command has boto3's own credentials alone, for"
    assert check("--store", tmp_path)[0].endswith(f"{alone} {tmp_path}/secrets.json holds none of this job")
    (tmp_path / "secrets.json").write_text("{")
    assert f"{alone} {tmp_path}/secrets.json cannot be read" in check("--store", tmp_path)[0]


@pytest.mark.usefixtures("check")
def test_settings_of_files_and_s3_are_read_as_the_controller_reads_them(tmp_path, monkeypatch, lc_events):
    monkeypatch.setenv("LC_S3_TIMEOUT_SECONDS", "soon")
    result = lc_events("provenance", "job1", "--round", 1, "--check", "--store", tmp_path)
    assert result.code == 2
    assert "LC_S3_TIMEOUT_SECONDS is 'soon', but must be" in result.err


@pytest.mark.usefixtures("check")
def test_what_else_is_set_wrong_keeps_nobody_from_comparing(tmp_path, monkeypatch, lc_events):
    monkeypatch.setenv("LC_TICK_SECONDS", "soon")
    assert lc_events("provenance", "job1", "--round", 1, "--check", "--store", tmp_path).code == 3
