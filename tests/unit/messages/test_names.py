from __future__ import annotations

import pytest

from lc_events.messages.names import is_namespace, is_resource_name, is_word, stream_id


@pytest.mark.parametrize("name", ["edge1", "Edge_1.local-2", "a" * 64, "."])
def test_words_of_the_contract_name_nodes_and_workers(name: str):
    assert is_word(name)


@pytest.mark.parametrize("name", ["", "+", "#", "a/b", "a b", "ü", "a" * 65, "a\n", "$x"])
def test_a_name_that_could_mean_something_to_a_broker_is_no_word(name: str):
    assert not is_word(name)


@pytest.mark.parametrize("name", ["job1", "a", "a-b", "a.b.c", "1", ".".join(["a" * 63] * 3)])
def test_rfc_1123_names_name_resources(name: str):
    assert is_resource_name(name)


@pytest.mark.parametrize(
    "name", ["", "Job", "-a", "a-", "a..b", ".a", "a.", "a_b", "a/b", "a\n", ".".join(["a" * 63] * 4)]
)
def test_other_names_do_not(name: str):
    assert not is_resource_name(name)


def test_a_namespace_is_one_label():
    assert is_namespace("kube-system")
    assert not is_namespace("a.b")
    assert not is_namespace("")
    assert not is_namespace("a" * 64)


def test_a_stream_is_namespace_kind_and_name():
    assert stream_id("default", "lifelonglearningjob", "job1") == "default/lifelonglearningjob/job1"
