from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.errors import UsageError
from lc_events.gm.manifests import read_manifests, read_manifests_file
from lc_events.gm.requests import read_resource

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "job.yaml"


def test_sednas_own_sample_is_read_as_kubectl_reads_it() -> None:
    (resource,) = read_manifests(
        """
apiVersion: sedna.io/v1alpha1
kind: LifelongLearningJob
metadata: {name: atcii-classifier-demo}
spec:
  dataset: {name: "lifelong-dataset", trainProb: 0.8}
  trainSpec:
    template:
      spec:
        nodeName:  "edge-node"
        containers:
          - image: kubeedge/sedna-example-lifelong-learning-atcii-classifier:v0.3.0
            args: ["train.py"]
            env: [{name: "early_stopping_rounds", value: "100"}]
    trigger:
      checkPeriodSeconds: 60
      timer: {start: 02:00, end: 24:00}
      condition: {operator: ">", threshold: 500, metric: num_of_samples}
  outputDir: "/output"
""",
        "sample",
    )
    trigger = resource["spec"]["trainSpec"]["trigger"]  # type: ignore[index,call-overload]
    assert trigger["timer"] == {"start": "02:00", "end": "24:00"}  # type: ignore[index,call-overload]
    assert trigger["condition"]["threshold"] == 500  # type: ignore[index,call-overload]
    assert read_resource(resource).name == "atcii-classifier-demo"


def test_the_digits_example_is_two_good_manifests() -> None:
    resources = read_manifests_file(DIGITS)
    assert [read_resource(resource).kind for resource in resources] == ["dataset", "lifelonglearningjob"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9:30", "9:30"),
        ("24:00", "24:00"),
        ("2024-01-01", "2024-01-01"),
        ("010", "010"),
        ("0x1f", "0x1f"),
        ("12", 12),
        ("-3", -3),
        ("0.8", 0.8),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("~", None),
        ("'7'", "7"),
        (".nan", ".nan"),
        ("1.2.3", "1.2.3"),
        ("<", "<"),
        (">=", ">="),
    ],
)
def test_plain_words_keep_their_meaning(text: str, value: object) -> None:
    quoted = text if text not in ("<", ">=") else f'"{text}"'
    assert read_manifests(f"a: {quoted}", "-") == [{"a": value}]


def test_a_list_is_the_resources_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "kind: List\nitems: [{kind: Dataset}, {kind: LifelongLearningJob}]\n---\nkind: Dataset"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert [r["kind"] for r in read_manifests_file(Path("-"))] == ["Dataset", "LifelongLearningJob", "Dataset"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: List", "holds no resource"),
        ("kind: List\nitems: [3]", "document 1: is not a resource"),
        ("", "holds no resource"),
        ("---\n---\n", "holds no resource"),
        ("- a\n- b", "document 1: is not a resource"),
        ("a: [1", "not YAML"),
        ("a: 1\na: 2", "'a' is there twice"),
        ("a: !!python/object:os.system {}", "not YAML"),
        ("a: 123456789012345678901234567890", "document 1"),
        ("1: a", "document 1"),
    ],
)
def test_what_is_no_manifest_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=r"m\.yaml") as refused:
        read_manifests(text, "m.yaml")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.yaml"):
        read_manifests_file(tmp_path / "nowhere.yaml")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert all(isinstance(resource, dict) for resource in read_manifests(text, "any"))
