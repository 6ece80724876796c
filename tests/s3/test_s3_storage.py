from __future__ import annotations

import hashlib
import os
import re
import socket
import subprocess
import sys

import pytest
from support.s3 import objects, open_uploads, storage_at
from support.s3_proxy import Fault, S3Proxy

from lc_events.errors import StorageError
from lc_events.storage import Credential, FileStat, LocalStorage, S3Clients, Storages, WrittenFile
from lc_events.storage.s3 import PART_BYTES

MIB = os.urandom(1 << 20)


@pytest.fixture(params=["weed", "moto"])
def storage(request):
    if request.param == "weed":
        return request.getfixturevalue("s3_server").storage()
    return storage_at(request.getfixturevalue("moto_endpoint"))


def sha256(*chunks):
    return hashlib.sha256(b"".join(chunks)).hexdigest()


def test_what_is_written_is_read_again(storage, prefix):
    written = storage.write(f"{prefix}/data.txt", [b"one\n", b"", b"two\n"])
    assert written == WrittenFile(f"{prefix}/data.txt", 8, sha256(b"one\ntwo\n"))
    assert b"".join(storage.read(f"{prefix}/data.txt")) == b"one\ntwo\n"
    assert storage.stat(f"{prefix}/data.txt") == FileStat(8)
    assert storage.sha256(f"{prefix}/data.txt") == written.sha256


def test_no_chunks_make_an_empty_object(storage, prefix):
    assert storage.write(f"{prefix}/empty", []).size == 0
    assert storage.exists(f"{prefix}/empty")
    assert b"".join(storage.read(f"{prefix}/empty")) == b""


def test_reading_a_range_ends_where_the_object_ends(storage, prefix):
    url = f"{prefix}/f"
    storage.write(url, [b"0123456789"])
    assert b"".join(storage.read(url, offset=3, length=4)) == b"3456"
    assert b"".join(storage.read(url, offset=8, length=40)) == b"89"
    assert b"".join(storage.read(url, offset=80)) == b""


@pytest.mark.parametrize("size", [PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 5])
def test_large_objects_go_in_parts(storage, prefix, size):
    data = (MIB * (size // len(MIB) + 1))[:size]
    written = storage.write(f"{prefix}/large", (data[i : i + 300_001] for i in range(0, size, 300_001)))
    assert written == WrittenFile(f"{prefix}/large", size, sha256(data))
    found = storage.open_object(f"{prefix}/large")
    assert found.size == size
    assert (found.etag.count("-") == 1) == (size > PART_BYTES)
    assert found.read(size - 10, 100) == data[-10:]


def test_an_error_of_the_chunks_leaves_the_old_object_and_no_parts(storage, prefix):
    url = f"{prefix}/index.pkl"
    storage.write(url, [b"old"])

    def chunks():
        yield from [MIB] * 20
        raise StorageError("the spool is short")

    with pytest.raises(StorageError, match="the spool is short"):
        storage.write(url, chunks())
    assert objects(storage, prefix) == {url: "old"}
    assert open_uploads(storage, "bkt") == []


def test_parts_of_a_killed_upload_go_with_the_next_one(storage, prefix):
    url = f"{prefix}/index.pkl"
    key = url.removeprefix("s3://bkt/")
    for name in (key, f"{key}.other"):
        storage._client.create_multipart_upload(Bucket="bkt", Key=name)
    storage.write(url, [MIB] * 9)
    assert open_uploads(storage, "bkt") == [f"{key}.other"]
    storage.write(f"{url}.other", [MIB] * 9)
    assert open_uploads(storage, "bkt") == []


def test_the_server_copies_across_buckets(storage, prefix):
    source, target = f"{prefix}/eval/1/index.pkl", prefix.replace("bkt", "other") + "/deploy/index.pkl"
    storage.write(source, [b"large" * 100])
    storage.write(target, [b"small"])
    copied = storage.copy(source, target, below=(prefix,))
    assert copied == WrittenFile(target, 500, sha256(b"large" * 100))
    assert b"".join(storage.read(target)) == b"large" * 100


def test_a_large_model_is_copied_in_parts(storage, prefix, monkeypatch):
    monkeypatch.setattr("lc_events.storage.s3.COPY_PART_BYTES", 5 << 20)
    data = MIB * 11
    storage.write(f"{prefix}/m", [data])
    copied = storage.copy(f"{prefix}/m", f"{prefix}/deploy/index.pkl", below=(prefix,))
    assert copied.sha256 == sha256(data) == storage.sha256(f"{prefix}/deploy/index.pkl")
    assert open_uploads(storage, "bkt") == []


def test_a_model_outside_the_folder_is_refused(storage, prefix):
    storage.write(f"{prefix}/out/m", [b"m"])
    storage.write(f"{prefix}/outer/m", [b"m"])
    other = prefix.replace("bkt", "other")
    outside = (f"{prefix}/outer/m", f"{prefix}/out/../outer/m", f"{prefix}/out/%2e%2e/outer/m", f"{prefix}/out")
    for url in (*outside, f"{other}/out/m"):
        for below in ((f"{prefix}/out/",), (f"{prefix}/out", f"{other}/o"), ()):
            with pytest.raises(StorageError) as caught:
                storage.copy(url, f"{prefix}/out/deploy/index.pkl", below=below)
            assert caught.value.code == "outside", url


def test_a_model_in_any_of_several_prefixes_is_copied(storage, prefix):
    other = prefix.replace("bkt", "other")
    for url in (f"{prefix}/out/m", f"{other}/released/m"):
        storage.write(url, [url.encode()])
        storage.copy(url, f"{prefix}/out/deploy/index.pkl", below=(f"{prefix}/out", f"{other}/released"))
        assert b"".join(storage.read(f"{prefix}/out/deploy/index.pkl")) == url.encode()


def test_what_is_missing_says_so(storage, prefix):
    assert not storage.exists(f"{prefix}/nothing")
    for attempt in (
        lambda: storage.stat(f"{prefix}/nothing"),
        lambda: list(storage.read(f"{prefix}/nothing")),
        lambda: storage.copy(f"{prefix}/nothing", f"{prefix}/x", below=(prefix,)),
    ):
        with pytest.raises(StorageError, match=f"{prefix}/nothing at .*: there is no such object") as caught:
            attempt()
        assert (caught.value.code, caught.value.missing) == ("missing", True)


def test_a_missing_bucket_is_not_a_missing_object(storage):
    for attempt in (
        lambda: storage.stat("s3://no-such-bucket/x"),
        lambda: storage.exists("s3://no-such-bucket/x"),
        lambda: storage.write("s3://no-such-bucket/x", [b"1"]),
        lambda: storage.write("s3://no-such-bucket/x", [MIB] * 9),
        lambda: list(storage.list("s3://no-such-bucket")),
    ):
        with pytest.raises(StorageError, match="there is no such bucket") as caught:
            attempt()
        assert (caught.value.code, caught.value.missing) == ("no_bucket", False)


@pytest.mark.parametrize("url", ["s3://bkt", "s3://bkt/", "s3://bkt/folder/", "s3:///key", "/data/x"])
def test_a_url_without_a_key_is_no_object(storage, url):
    for attempt in (lambda: storage.stat(url), lambda: storage.write(url, [b""]), lambda: storage.delete(url)):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert caught.value.code == "not_a_file"
    assert not storage.exists(url)


def test_keys_may_hold_what_urls_may_not(storage, prefix):
    url = f"{prefix}/a b/ü%41+?#&=.txt"
    storage.write(url, [b"1"])
    storage.copy(url, f"{prefix}/deploy/ä ö.pkl", below=(prefix,))
    assert objects(storage, prefix) == {url: "1", f"{prefix}/deploy/ä ö.pkl": "1"}


def test_a_listing_goes_on_over_pages(storage, prefix, monkeypatch):
    for number in range(5):
        storage.write(f"{prefix}/data/{number}", [b""])
    storage.write(f"{prefix}/data2", [b""])
    paginator = storage._client.get_paginator
    monkeypatch.setattr(
        storage._client, "get_paginator", lambda name: _Paged(paginator(name)) if name == "list_objects_v2" else None
    )
    assert list(storage.list(f"{prefix}/data")) == [f"{prefix}/data/{number}" for number in range(5)]


class _Paged:
    """Pages of two."""

    def __init__(self, paginator):
        self._paginator = paginator

    def paginate(self, **arguments):
        return self._paginator.paginate(**arguments, PaginationConfig={"PageSize": 2})


def test_deleting_is_done_once(storage, prefix):
    storage.write(f"{prefix}/x", [b"1"])
    storage.delete(f"{prefix}/x")
    storage.delete(f"{prefix}/x")
    assert not storage.exists(f"{prefix}/x")


def test_a_folder_is_not_made_for_there_are_none(storage, prefix):
    storage.make_folder(f"{prefix}/data/train")
    assert objects(storage, prefix) == {}


def test_an_object_that_was_looked_at_is_never_another_one(storage, prefix):
    url = f"{prefix}/ds.txt"
    storage.write(url, [b"old old old"])
    found = storage.open_object(url)
    assert found.read(0, 3) == b"old"
    storage.write(url, [b"new new new"])
    with pytest.raises(StorageError, match="replaced meanwhile") as caught:
        found.read(4, 3)
    assert caught.value.code == "changed"
    assert storage.open_object(url).stamp != found.stamp


def test_an_object_cut_short_is_never_read_as_another_one(storage, prefix):
    url = f"{prefix}/ds.txt"
    storage.write(url, [b"old old old"])
    found = storage.open_object(url)
    storage.write(url, [b"new"])
    with pytest.raises(StorageError) as caught:
        found.read(8, 3)
    assert caught.value.code == "changed"


def test_versions_of_a_bucket_that_keeps_them_stay_readable(moto_endpoint):
    storage = storage_at(moto_endpoint)
    storage.make_bucket("versioned")
    storage._client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
    storage.write("s3://versioned/out/m", [b"old"])
    found = storage.open_object("s3://versioned/out/m")
    storage.write("s3://versioned/out/m", [b"new"])
    assert found.read(0, 3) == b"old"
    again = storage.open_object("s3://versioned/out/m")
    assert again.version not in (None, found.version)
    assert storage.copy("s3://versioned/out/m", "s3://versioned/out/deploy", below=("s3://versioned/out",)).size == 3


def test_copies_go_between_local_files_and_objects(s3_server, prefix, tmp_path):
    local = LocalStorage(tmp_path)
    storages = Storages(local, S3Clients())
    credential = Credential.from_annotation(s3_server.annotation)
    local.write("/out/train/1/index.pkl", [b"model"])
    up = storages.copy("/out/train/1/index.pkl", f"{prefix}/deploy/index.pkl", below=("/out",), credential=credential)
    assert up == WrittenFile(f"{prefix}/deploy/index.pkl", 5, sha256(b"model"))
    down = storages.copy(f"{prefix}/deploy/index.pkl", "/out/back.pkl", below=(prefix,), credential=credential)
    assert down == WrittenFile("/out/back.pkl", 5, sha256(b"model"))
    within = storages.copy("/out/back.pkl", "/out/deploy/index.pkl", below=("/out",))
    assert within.sha256 == sha256(b"model")
    (tmp_path / "secret").write_bytes(b"root:x")
    (tmp_path / "out/link.pkl").symlink_to(tmp_path / "secret")
    for source, below in (("/out/link.pkl", "/out"), ("/secret", "/out")):
        with pytest.raises(StorageError) as caught:
            storages.copy(source, f"{prefix}/stolen", below=(below,), credential=credential)
        assert caught.value.code == "outside"
    assert not s3_server.storage().exists(f"{prefix}/stolen")


def test_each_url_has_its_storage(tmp_path):
    local = LocalStorage(tmp_path)
    storages = Storages(local, S3Clients())
    assert storages.storage_for("/data/x") is local
    assert storages.storage_for("data/x") is local
    one, other = (Credential("http://127.0.0.1:9", name, name) for name in ("one", "other"))
    assert storages.storage_for("s3://bkt/x", one) is storages.storage_for("s3://bkt/y", one)
    assert storages.storage_for("s3://bkt/x", one) is not storages.storage_for("s3://bkt/x", other)
    with pytest.raises(StorageError, match="https://host/x: a URL is a local path or s3://") as caught:
        storages.storage_for("https://host/x")
    assert caught.value.code == "unsupported"


def test_an_ipv6_server_is_reached(s3_server, prefix):
    try:
        proxy = S3Proxy(s3_server.endpoint, family=socket.AF_INET6)
        proxy.start()
    except OSError:
        pytest.skip("no IPv6 on loopback")
    try:
        text = s3_server.annotation.replace(s3_server.endpoint, proxy.endpoint)
        storage = S3Clients().storage(Credential.from_annotation(text))
        storage.write(f"{prefix}/x", [b"six"])
        assert b"".join(storage.read(f"{prefix}/x")) == b"six"
    finally:
        proxy.stop()


def test_requests_to_a_custom_endpoint_are_what_every_server_understands(proxy, prefix):
    storage_at(proxy.endpoint).write(f"{prefix}/x", [b"1"])
    [put] = proxy.passed
    assert put.key == f"{prefix.removeprefix('s3:/')}/x"
    assert not [name for name in put.headers if "checksum" in name or "trailer" in name or name == "content-encoding"]
    assert put.headers["authorization"].startswith("AWS4-HMAC-SHA256 ")


def test_boto3s_own_settings_count_where_no_credential_is_given(proxy, prefix):
    code = (
        "from lc_events.storage import Credential, S3Clients;"
        "s = S3Clients().storage(Credential());"
        f"s.write('{prefix}/x', [b'1']); print(s._server, s.exists('{prefix}/x'))"
    )
    environ = {
        "PATH": os.environ["PATH"],
        "AWS_ENDPOINT_URL": f"http://{proxy.endpoint}",
        "AWS_ACCESS_KEY_ID": "CHAIN",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [proxy.endpoint, "True"]
    assert "Credential=CHAIN/" in proxy.passed[0].headers["authorization"]
    assert proxy.passed[0].key.startswith("/bkt/")


def test_boto3_is_imported_with_the_first_client_and_not_before():
    code = (
        "import sys, lc_events.storage, lc_events.controller.bootstrap;"
        "from lc_events.storage import S3Clients, Storages, LocalStorage; from pathlib import Path;"
        "Storages(LocalStorage(Path('/')), S3Clients()).storage_for('/x');"
        "print(sorted({'boto3', 'botocore'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_parts_are_uploaded_in_bounded_memory(s3_server, prefix):
    code = (
        "import os, resource, sys; from lc_events.storage import Credential, S3Clients;"
        "s = S3Clients().storage(Credential.from_annotation(sys.stdin.read())); s.exists('s3://bkt/x');"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; chunk = os.urandom(1 << 20);"
        f"s.write('{prefix}/x', (chunk for _ in range(200)));"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=s3_server.annotation, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 60
    s3_server.storage().delete(f"{prefix}/x")


def test_a_half_answer_is_gone_on_with_from_where_it_broke_off(proxy, prefix):
    storage = storage_at(proxy.endpoint)
    data = MIB * 3
    storage.write(f"{prefix}/x", [data])
    proxy.passed.clear()
    proxy.fail(Fault(cut_after=1_500_000), lambda passed: passed.method == "GET")
    assert b"".join(storage.read(f"{prefix}/x")) == data
    ranges = [passed.headers["range"] for passed in proxy.passed if passed.method == "GET"]
    starts = [int(re.findall(r"\d+", each)[0]) for each in ranges]
    assert len(starts) == 3
    assert starts == sorted(set(starts))
    assert all("if-match" in passed.headers for passed in proxy.passed if passed.method == "GET")
