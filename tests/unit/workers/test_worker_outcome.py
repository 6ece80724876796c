from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.errors import RefusedError
from lc_events.messages.json import UINT64_MAX
from lc_events.workers.outcome import describe_exit, read_result
from lc_events.workers.roots import without_root

ROOT = Path("/srv/edge")


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "result.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_models_lose_the_root_and_keep_everything_else(tmp_path: Path):
    model = {"format": "pkl", "url": "/srv/edge/out/index.pkl", "metrics": {"acc": [0.5]}, "n": UINT64_MAX}
    result = read_result(written(tmp_path, {"results": [model], "ownerInfo": {"a": 1}}), ROOT)
    assert result is not None
    assert result.models == [{**model, "url": "/out/index.pkl"}]
    assert result.owner_info == {"a": 1}


def test_a_bare_list_is_a_result_too(tmp_path: Path):
    result = read_result(written(tmp_path, [{"url": "s3://b/index.pkl"}]), ROOT)
    assert result is not None
    assert result.models == [{"url": "s3://b/index.pkl"}]


def test_no_file_is_no_result(tmp_path: Path):
    assert read_result(tmp_path / "result.json", ROOT) is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('[{"url": "/m", "acc": NaN}]', "not JSON"),
        ('[{"url": "/m", "n": 99999999999999999999}]', "64 bits"),
        ("3", "list of models"),
        ('"model"', "list of models"),
        ([3], "an object"),
        ([{"format": "pkl"}], "no url"),
        ([{"url": ""}], "no url"),
        ({"results": [], "ownerInfo": [1]}, "ownerInfo"),
        ("[" * 100 + "]" * 100, "nested"),
        (" " * 300_000, "larger than"),
    ],
)
def test_a_bad_result_file_is_refused_with_the_reason(tmp_path: Path, content: object, reason: str):
    with pytest.raises(RefusedError, match=reason):
        read_result(written(tmp_path, content), ROOT)


def test_a_link_and_a_pipe_are_no_result_files(tmp_path: Path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(RefusedError, match=r"plain file|not readable"):
            read_result(tmp_path / name, ROOT)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["results", "url", "ownerInfo", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: object):
    path = written(tmp_path_factory.mktemp("result"), json.dumps(content))
    try:
        result = read_result(path, ROOT)
    except RefusedError:
        return
    assert result is not None
    assert all(isinstance(model["url"], str) for model in result.models)


def test_a_path_beside_the_root_keeps_its_name():
    assert without_root("/srv/edge2/m", ROOT) == "/srv/edge2/m"
    assert without_root("/srv/edge/m", ROOT) == "/m"
    assert without_root("/m", Path("/")) == "/m"


def test_an_end_is_described_in_words():
    assert describe_exit(3) == "the program exited with 3"
    assert describe_exit(-9) == "the program was ended by SIGKILL"
    assert describe_exit(-99) == "the program was ended by signal 99"
