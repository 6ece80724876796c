from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lc_events.messages.model_places import lies_in, read_place

names = st.text(st.characters(exclude_characters="/", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6)
plain = names.filter(lambda name: name != "." and ".." not in name and "%" not in name)
paths = st.lists(plain, min_size=1, max_size=4)
buckets = st.text("abcXYZ019.-_", min_size=1, max_size=6).filter(lambda name: name != "..")


@st.composite
def places(draw: st.DrawFn) -> str:
    path = "/".join(draw(paths))
    return draw(st.sampled_from([f"/{path}", f"s3://{draw(buckets)}", f"s3://{draw(buckets)}/{path}"]))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/models", "/models"),
        ("//models//./released/", "/models/released"),
        ("/models with spaces", "/models with spaces"),
        ("s3://models", "s3://models"),
        ("s3://models/", "s3://models"),
        ("s3://models/released/", "s3://models/released"),
        ("s3://models/100%", "s3://models/100%"),
    ],
)
def test_a_place_is_read_as_it_is_compared(text: str, place: str):
    assert read_place(text) == place


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "/", "//", "/.", "/./", "/..", "/models/..", "/models/../..", "models", "./models", "~/models"),
        *("http://host/models", "https://host", "file:///models", "S3://models", "s3:/models", "s3:models"),
        *("s3://", "s3:///", "s3:///models", "s3://*", "s3://models//a", "s3://models/a//", "s3://u:p@models"),
        *("s3://models/..", "s3://models/%2e%2e/a", "s3://models/%252E%252e", "s3://../a", "/models/%2E%2E"),
        *("/models\n", "/mod\0els", "s3://models/\x7f"),
    ],
)
def test_what_is_no_place_is_refused(text: str):
    with pytest.raises(ValueError, match="must be"):
        read_place(text)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("/models/m.pkl", "/models"),
        ("/models/a/b/m.pkl", "/models/a"),
        ("//models/./a//m.pkl", "/models/a"),
        ("/m.pkl", "/"),
        ("s3://models/m.pkl", "s3://models"),
        ("s3://models/a/m.pkl", "s3://models/a"),
        ("s3://models/a//m.pkl", "s3://models/a"),
        ("s3://models/a/100%.pkl", "s3://models/a"),
        ("s3://models/a/..m.pkl", "s3://models/a/"),
    ],
)
def test_a_url_lies_in_its_place(url: str, place: str):
    assert lies_in(url, place)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("/etc/shadow", "/models"),
        ("/models", "/models"),
        ("/models/", "/models"),
        ("/models/.", "/models"),
        ("/modelsb/m.pkl", "/models"),
        ("models/m.pkl", "/models"),
        ("/models/../etc/shadow", "/models"),
        ("/models/a/../m.pkl", "/models"),
        ("/models/%2e%2e/etc/shadow", "/models"),
        ("s3://models/ab/m.pkl", "s3://models/a"),
        ("s3://models/a", "s3://models/a"),
        ("s3://models/a/", "s3://models/a"),
        ("s3://models/", "s3://models"),
        ("s3://models2/a/m.pkl", "s3://models"),
        ("s3://Models/a/m.pkl", "s3://models"),
        ("S3://models/a/m.pkl", "s3://models"),
        ("s3://models//a/m.pkl", "s3://models/a"),
        ("s3://models/A/m.pkl", "s3://models/a"),
        ("s3://models/a/../b/m.pkl", "s3://models/a"),
        ("s3://models/a/%2e%2e/b/m.pkl", "s3://models/a"),
        ("s3://models/a/.%2E/b/m.pkl", "s3://models/a"),
        ("s3://models/a/%252e%252e/b/m.pkl", "s3://models/a"),
        ("s3://models/a%2f..%2fb/m.pkl", "s3://models"),
        ("s3:///models/m.pkl", "/models"),
        ("/models/m.pkl", "s3://models"),
        ("", "/models"),
    ],
)
def test_a_url_elsewhere_does_not(url: str, place: str):
    assert not lies_in(url, place)


@given(places(), paths)
@example("s3://a", ["s3:", "a"])
def test_what_is_joined_to_a_place_lies_in_it(place: str, path: list[str]):
    assert lies_in("/".join([place, *path]), place)
    assert lies_in("/".join([place, *path]), read_place(f"{place}/"))
    assert not lies_in(place, place)


@given(places(), plain, paths)
def test_a_longer_name_at_the_end_of_a_place_is_another_one(place: str, more: str, path: list[str]):
    assert not lies_in("/".join([place + more, *path]), place)


@given(places(), places(), paths)
def test_a_url_lies_in_a_place_only_name_by_name(place: str, other: str, path: list[str]):
    url = "/".join([other, *path])
    assert lies_in(url, place) == url.startswith(f"{place}/")


@given(places(), st.lists(names | st.sampled_from(["..", ".", ""]), max_size=5), st.integers(0, 3))
def test_whoever_climbs_lies_nowhere_however_often_it_is_encoded(place: str, path: list[str], times: int):
    assume(".." in path)
    climbing = "/".join(path)
    for _ in range(times):
        climbing = quote(climbing.replace(".", "%2E"), safe="")
    assert not lies_in(f"{place}/{climbing}", place)


encoded = st.lists(
    st.sampled_from(["%", "%25", "%2", "25", "2e", "%2E", "E", "%32", "%c3", ".", "/", "a", "é"]), max_size=20
)


@given(encoded.map("".join), st.integers(0, 3))
def test_what_is_encoded_is_decoded_until_nothing_changes(path: str, times: int):
    url = f"s3://models/a{path}b"
    for _ in range(times):
        url = url.replace("%", "%25")
    decoded = url
    while (again := unquote(decoded)) != decoded:
        decoded = again
    assert lies_in(url, "s3://models") == (".." not in decoded.split("/"))


@pytest.mark.parametrize("climbs", [False, True])
def test_a_url_of_a_megabyte_that_is_encoded_again_and_again_is_read_in_one_pass(climbs: bool):
    """Decoding layer by layer would take longer than anybody waits for a test: each takes away two characters."""
    name = f"%{'25' * 500_000}2e" * 2 if climbs else f"%{'25' * 500_000}"
    assert lies_in(f"/models/{name}/m.pkl", "/models") == (not climbs)


@given(st.text(max_size=20), places())
def test_any_text_can_be_asked_about(url: str, place: str):
    assert lies_in(url, place) in (True, False)
