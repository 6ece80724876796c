from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.recordings import recording

from lc_events.controller.sample_index import sample_index


def index(*chunks: bytes, url: str = "s3://bkt/data/ds.txt") -> list[str]:
    return b"".join(sample_index(chunks, url)).decode().splitlines()


def test_the_recorded_indices_are_those_of_the_recorded_samples():
    compared = 0
    for line in recording("s3_txt"):
        for url, text in line.get("objects", {}).items():
            if url.endswith("/dataIndex.txt"):
                samples = line["objects"][url.replace("dataIndex.txt", "data.txt")]
                assert b"".join(sample_index([samples.encode()], "s3://bkt/data/ds.txt")).decode() == text
                compared += 1
    assert compared > 10


def test_words_with_an_extension_are_taken_and_no_others():
    assert index(b"a/b.jpg 0\nx.y/z 1.5 .hidden c.\n\n a.png\tb.png  \n") == [
        "s3://bkt/data/",
        *("a/b.jpg", "1.5", ".hidden", "c.", "a.png", "b.png"),
    ]


def test_the_prefix_is_what_lies_before_the_name_of_the_dataset():
    assert index(url="s3://bkt/ds.txt") == ["s3://bkt/"]
    assert index(url="s3://bkt/a/b/ds.txt") == ["s3://bkt/a/b/"]


def test_a_last_sample_without_an_end_counts():
    assert index(b"a.jpg\nb.jpg") == ["s3://bkt/data/", "a.jpg", "b.jpg"]


@given(st.binary(), st.lists(st.integers(0, 50)))
def test_it_does_not_matter_where_chunks_end(data, cuts):
    chunks, left = [], data
    for cut in cuts:
        chunks.append(left[:cut])
        left = left[cut:]
    assert b"".join(sample_index([*chunks, left], "s3://b/x")) == b"".join(sample_index([data], "s3://b/x"))
