from __future__ import annotations

import json

import pytest

from lc_events.errors import StorageError
from lc_events.storage import Credential

KEYS = {"ACCESS_KEY_ID": "AKID", "SECRET_ACCESS_KEY": "SECRETKEY123"}


def annotation(**fields):
    return json.dumps({name.replace("_", "-") if name.startswith("s3") else name: v for name, v in fields.items()})


def endpoint(text, usehttps=None):
    fields = {"s3_endpoint": text, **KEYS} | ({} if usehttps is None else {"s3_usehttps": usehttps})
    return Credential.from_annotation(annotation(**fields)).endpoint


def test_the_annotation_of_sedna_is_read():
    text = annotation(s3_endpoint="127.0.0.1:23003", s3_usehttps="0", **KEYS)
    assert Credential.from_annotation(text) == Credential("http://127.0.0.1:23003", "AKID", "SECRETKEY123")


@pytest.mark.parametrize(
    ("text", "usehttps", "url"),
    [
        ("minio:9000", "0", "http://minio:9000"),
        ("minio:9000", "1", "https://minio:9000"),
        ("minio:9000", None, "https://minio:9000"),
        ("minio:9000", 0, "http://minio:9000"),
        ("http://minio:9000", None, "http://minio:9000"),
        ("http://minio:9000", "1", "http://minio:9000"),
        ("HTTPS://minio", "0", "https://minio"),
        ("https://minio/s3/", "0", "https://minio/s3"),
        ("[::1]:9000", "0", "http://[::1]:9000"),
        ("::1", "0", "http://[::1]"),
        ("fd00::7", "1", "https://[fd00::7]"),
        ("http://[fd00::7]:9000", "1", "http://[fd00::7]:9000"),
        (" minio:9000 ", "0", "http://minio:9000"),
        ("", "0", None),
    ],
)
def test_an_endpoint_has_a_scheme_or_none_a_name_or_an_address(text, usehttps, url):
    assert endpoint(text, usehttps) == url


@pytest.mark.parametrize("text", ["ftp://minio", "http://", "minio:0", "minio:port", "u:p@minio:9", "minio?x", "[::1"])
def test_what_is_no_endpoint_is_refused_without_being_quoted(text):
    with pytest.raises(StorageError, match="s3-endpoint is not HOST") as caught:
        endpoint(text, "0")
    assert caught.value.code == "credential"
    assert text not in str(caught.value)


def test_keys_come_in_pairs_or_not_at_all():
    for name in KEYS:
        with pytest.raises(StorageError, match="only one of") as caught:
            Credential.from_annotation(annotation(s3_endpoint="minio", **{name: "SECRETKEY123"}))
        assert "SECRETKEY123" not in str(caught.value)
    assert Credential.from_annotation(annotation(s3_endpoint="minio")) == Credential("https://minio")


def test_a_session_token_and_a_region_are_read_too():
    text = annotation(s3_region="eu-central-1", SESSION_TOKEN="TOKEN", **KEYS)
    assert Credential.from_annotation(text) == Credential(None, "AKID", "SECRETKEY123", "TOKEN", "eu-central-1")


@pytest.mark.parametrize("text", ["", "***", "[]", "SECRETKEY123", '{"a":', "\ud800"])
def test_an_annotation_that_is_no_object_is_refused_without_being_quoted(text):
    with pytest.raises(StorageError, match="is not a JSON object") as caught:
        Credential.from_annotation(text)
    assert "SECRETKEY123" not in repr(caught.value)


def test_a_worker_finds_sednas_names_in_its_environment():
    environ = {"S3_ENDPOINT_URL": "http://minio:9000", **KEYS, "PATH": "/bin"}
    assert Credential.from_environ(environ) == Credential("http://minio:9000", "AKID", "SECRETKEY123")
    assert Credential.from_environ({"AWS_ACCESS_KEY_ID": "boto3 reads it"}) == Credential()


def test_keys_are_never_shown():
    credential = Credential("http://minio", "AKID", "SECRETKEY123", "TOKEN", "eu")
    assert repr(credential) == "Credential(endpoint='http://minio', region='eu')"
