"""What goes wrong between us and a server, in words; nothing of it leaves anything behind."""

from __future__ import annotations

import logging
import re
import ssl
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.certificates import issued, self_signed
from support.s3 import objects, open_uploads, storage_at
from support.s3_proxy import Fault, S3Proxy

from lc_events.errors import StorageError
from lc_events.storage import Credential, S3Clients

MIB = b"x" * (1 << 20)

REFUSALS = [
    (403, "AccessDenied", "denied", "access is denied"),
    (403, "InvalidAccessKeyId", "denied", "does not know this access key"),
    (403, "SignatureDoesNotMatch", "denied", "secret key does not fit"),
    (403, "SomethingNew", "denied", "access is denied"),
    (400, "ExpiredToken", "expired", "credentials have expired"),
    (403, "RequestTimeTooSkewed", "clock", "clocks of this node and of the server"),
    (404, "NoSuchBucket", "no_bucket", "no such bucket"),
    (404, "NoSuchKey", "missing", "no such object"),
    (503, "SlowDown", "slow", "asks for fewer requests"),
    (429, "TooManyRequests", "slow", "asks for fewer requests"),
    (500, "InternalError", "server", "trouble of its own"),
    (503, "ServiceUnavailable", "server", "trouble of its own"),
    (507, "XMinioStorageFull", "no_space", "no room left"),
    (501, "NotImplemented", "unsupported", "cannot do this"),
    (400, "InvalidRequest", "storage", "refuses (400 InvalidRequest)"),
]


@pytest.fixture
def storage(proxy):
    return storage_at(proxy.endpoint, timeout=1)


def attempts(storage, prefix):
    return {
        "look": lambda: storage.stat(f"{prefix}/x"),
        "read": lambda: list(storage.read(f"{prefix}/x")),
        "write": lambda: storage.write(f"{prefix}/new", [b"1"]),
        "write in parts": lambda: storage.write(f"{prefix}/new", [MIB] * 9),
        "copy": lambda: storage.copy(f"{prefix}/x", f"{prefix}/new", below=(prefix,)),
    }


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal[1])
def test_a_refusal_is_told_in_words(proxy, storage, prefix, refusal):
    status, s3_code, code, words = refusal
    storage_at(proxy.endpoint).write(f"{prefix}/x", [b"old"])
    proxy.fail(Fault(status, s3_code))
    for what, attempt in attempts(storage, prefix).items():
        with pytest.raises(StorageError, match=re.escape(words)) as caught:
            attempt()
        assert caught.value.code == code, what
        assert caught.value.missing == (code == "missing")
        assert proxy.endpoint in str(caught.value)
        assert prefix in str(caught.value)
        assert "refused by the test" not in str(caught.value)
    proxy.heal()
    assert objects(storage, prefix) == {f"{prefix}/x": "old"}
    assert open_uploads(storage, "bkt") == []


def test_a_server_that_is_down_is_told_and_then_found_again(proxy, storage, prefix):
    storage.write(f"{prefix}/x", [b"old"])
    proxy.stop()
    for what, attempt in attempts(storage, prefix).items():
        with pytest.raises(StorageError, match="the server cannot be reached") as caught:
            attempt()
        assert (caught.value.code, caught.value.missing) == ("unreachable", False), what
    proxy.start()
    storage.write(f"{prefix}/x", [b"new"])
    assert objects(storage, prefix) == {f"{prefix}/x": "new"}


@pytest.mark.parametrize("what", ["look", "read", "write", "write in parts", "copy"])
def test_a_server_that_does_not_answer_is_slow(proxy, storage, prefix, what):
    storage_at(proxy.endpoint).write(f"{prefix}/x", [b"old"])
    proxy.fail(Fault(stall=True))
    with pytest.raises(StorageError, match="does not answer in time") as caught:
        attempts(storage, prefix)[what]()
    assert caught.value.code == "slow"


def test_a_part_that_fails_for_good_leaves_no_upload_open(proxy, storage, prefix):
    storage.write(f"{prefix}/new", [b"old"])
    proxy.fail(Fault(500, "InternalError"), lambda p: p.method == "PUT" and "partNumber=2" in p.query)
    with pytest.raises(StorageError, match="trouble of its own"):
        storage.write(f"{prefix}/new", [MIB] * 17)
    proxy.heal()
    assert objects(storage, prefix) == {f"{prefix}/new": "old"}
    assert open_uploads(storage, "bkt") == []


def test_a_fault_that_passes_at_once_is_not_noticed(proxy, storage, prefix):
    proxy.fail(Fault(503, "SlowDown"), lambda p: p.method == "PUT", times=1)
    storage.write(f"{prefix}/x", [MIB] * 9)
    proxy.fail(Fault(cut_after=0), lambda p: p.method == "GET", times=1)
    assert storage.sha256(f"{prefix}/x")
    assert storage.stat(f"{prefix}/x").size == 9 << 20


def test_an_answer_that_always_breaks_off_at_once_is_an_error(proxy, storage, prefix):
    storage.write(f"{prefix}/x", [b"0123456789"])
    proxy.fail(Fault(cut_after=0), lambda p: p.method == "GET")
    with pytest.raises(StorageError, match="broke off") as caught:
        list(storage.read(f"{prefix}/x"))
    assert caught.value.code == "broken_off"


@pytest.mark.parametrize("heeds", [True, False])
def test_a_model_that_is_replaced_while_it_is_copied_is_not_taken_for_the_old_one(request, heeds, prefix):
    upstream = request.getfixturevalue("s3_server" if heeds else "moto_endpoint")
    storage = upstream.storage() if heeds else storage_at(upstream)
    with S3Proxy(upstream.endpoint if heeds else upstream) as proxy:
        keys = {"access_key": upstream.access_key, "secret_key": upstream.secret_key} if heeds else {}
        slow = storage_at(proxy.endpoint, **keys)
        storage.write(f"{prefix}/m", [b"old"])
        fault = proxy.fail(Fault(stall=True), lambda p: p.is_copy)
        with ThreadPoolExecutor(1) as pool:
            copied = pool.submit(slow.copy, f"{prefix}/m", f"{prefix}/deploy", below=(prefix,))
            assert fault.held.wait(10)
            storage.write(f"{prefix}/m", [b"new"])
            proxy.heal()
            with pytest.raises(StorageError, match="replaced") as caught:
                copied.result(20)
    assert caught.value.code == "changed"
    assert storage.exists(f"{prefix}/deploy") != heeds


def test_keys_that_do_not_fit_are_denied_by_a_real_server(s3_server, prefix):
    url = f"{prefix}/x"
    s3_server.storage().write(url, [b"1"])
    for keys, words in (
        ({"access_key": "NOBODY", "secret_key": "SECRETKEY123"}, "does not know this access key"),
        ({"access_key": s3_server.access_key, "secret_key": "SECRETKEY123"}, "does not fit the access key"),
    ):
        storage = storage_at(s3_server.endpoint, **keys)
        for attempt in (lambda storage=storage: storage.stat(url), lambda storage=storage: storage.write(url, [b""])):
            with pytest.raises(StorageError, match=words) as caught:
                attempt()
            assert caught.value.code == "denied"
            assert not any(key in str(caught.value) for key in keys.values())


def test_without_any_credentials_the_annotation_is_named(monkeypatch, proxy, prefix, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    storage = S3Clients().storage(Credential(f"http://{proxy.endpoint}"))
    with pytest.raises(StorageError, match=r"no credentials: give the annotation sedna\.io/credential") as caught:
        storage.stat(f"{prefix}/x")
    assert caught.value.code == "credential"


def test_a_certificate_is_trusted_only_with_its_ca(s3_server, prefix, tmp_path):
    authority = self_signed(tmp_path, "ca")
    server = issued(tmp_path, "server", authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.cert, server.key)
    with S3Proxy(s3_server.endpoint, tls=context) as proxy:
        text = s3_server.annotation.replace(s3_server.endpoint, proxy.endpoint).replace('"0"', '"1"')
        credential = Credential.from_annotation(text)
        assert credential.endpoint == f"https://{proxy.endpoint}"
        with pytest.raises(StorageError, match="certificate of a CA known here") as caught:
            S3Clients().storage(credential).write(f"{prefix}/x", [b"1"])
        assert caught.value.code == "unreachable"
        storage = S3Clients(ca_file=authority.cert).storage(credential)
        storage.write(f"{prefix}/x", [b"1"])
        assert storage.exists(f"{prefix}/x")


def test_nothing_secret_is_logged_even_when_all_is_logged(s3_server, prefix, caplog):
    caplog.set_level(logging.DEBUG, "lc_events")
    storage = s3_server.storage()
    storage.write(f"{prefix}/x", [b"1"])
    assert not storage.exists(f"{prefix}/y")
    assert s3_server.secret_key not in caplog.text
