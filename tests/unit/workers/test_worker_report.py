from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from lc_events.workers import report


@pytest.fixture
def result_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "result.json"
    monkeypatch.setenv("LC_RESULT_FILE", str(path))
    return path


def test_a_path_becomes_sednas_model(result_file: Path):
    report([Path("/out/train/1/index.pkl")], metrics={"accuracy": [0.5]}, owner_info={"epochs": 3})
    assert json.loads(result_file.read_text()) == {
        "results": [{"format": "pkl", "url": "/out/train/1/index.pkl", "metrics": {"accuracy": [0.5]}}],
        "ownerInfo": {"epochs": 3},
    }


def test_a_mapping_is_kept_and_its_own_metrics_win(result_file: Path):
    report([{"format": "onnx", "url": "/m", "metrics": {"f1": [1]}, "classes": ["a"]}], metrics={"accuracy": [0.5]})
    assert json.loads(result_file.read_text())["results"] == [
        {"format": "onnx", "url": "/m", "metrics": {"f1": [1]}, "classes": ["a"]}
    ]


def test_the_last_report_counts_and_leaves_nothing_else(result_file: Path):
    report(["/a.pkl"])
    report(["/b.pkl"])
    assert json.loads(result_file.read_text())["results"][0]["url"] == "/b.pkl"
    assert list(result_file.parent.iterdir()) == [result_file]


def test_a_nan_is_refused_before_anything_is_written(result_file: Path):
    with pytest.raises(ValueError, match="JSON"):
        report(["/a.pkl"], metrics={"loss": [math.nan]})
    assert not result_file.exists()


def test_what_json_cannot_hold_is_named(result_file: Path):
    with pytest.raises(TypeError, match="cannot hold a set"):
        report(["/a.pkl"], owner_info={"digits": {1, 2}})
    assert not result_file.exists()


def test_numbers_of_numpy_are_plain_numbers(result_file: Path):
    numpy = pytest.importorskip("numpy")
    report(["/a.pkl"], metrics={"accuracy": numpy.array([0.25, 0.5]), "n": numpy.int64(3)})
    assert json.loads(result_file.read_text())["results"][0]["metrics"] == {"accuracy": [0.25, 0.5], "n": 3}


def test_a_program_started_by_hand_prints_its_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("LC_RESULT_FILE", raising=False)
    report(["/a.pkl"])
    assert json.loads(capsys.readouterr().out)["results"] == [{"format": "pkl", "url": "/a.pkl"}]


def test_importing_the_helper_brings_in_nothing_heavy():
    heavy = "{'pydantic', 'paho', 'orjson', 'eventsourcing', 'boto3', 'lc_events.messages'}"
    code = f"import sys, lc_events.workers; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
