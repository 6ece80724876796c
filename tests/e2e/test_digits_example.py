from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lc_events.messages.resources import Dataset, LifelongLearningJob

pytest.importorskip("sklearn")

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


def run(program: str, *arguments: object, **variables: object) -> str:
    environment = {"PATH": os.environ["PATH"], **{name: str(value) for name, value in variables.items()}}
    command = [sys.executable, EXAMPLE / program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


class Job:
    """The files of a job, laid out as the local controller does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def train(self, round_number: int, output: str = "", **variables: object) -> Path:
        data = self.folder / "data" / "train" / str(round_number) / "data.csv"
        if not data.exists():
            run("make_samples.py", data, "--round", round_number)
        target = self.folder / "train" / (output or str(round_number))
        previous = self.folder / "train" / str(round_number - 1) / "index.pkl"
        result = self.folder / "result.json"
        run(
            "train.py",
            TRAIN_DATASET_URL=data,
            OUTPUT_URL=target,
            HAS_COMPLETED_INITIAL_TRAINING=str(previous.exists()).lower(),
            CLOUD_KB_INDEX=previous,
            LC_RESULT_FILE=result,
            **variables,
        )
        [model] = json.loads(result.read_text())["results"]
        assert model["url"] == str(target / "index.pkl")
        return target / "index.pkl"

    def evaluate(self, round_number: int, *models: Path, rows: str) -> float:
        data = self.folder / "eval.csv"
        data.write_text(rows)
        result = self.folder / "result.json"
        run(
            "eval.py",
            MODEL_URLS=";".join(map(str, models)),
            TEST_DATASET_URL=data,
            OUTPUT_URL=self.folder / "eval" / str(round_number),
            LC_RESULT_FILE=result,
        )
        accuracy: float = json.loads(result.read_text())["results"][0]["metrics"]["accuracy"][0]
        return accuracy


def reads(model: Path) -> tuple[float, float, float]:
    """Per cent of all ten digits, of 0-4 and of 5-9 that a model reads."""
    return tuple(float(number) for number in re.findall(r"([\d.]+)%", run("infer.py", "--once", model)))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path, Path]:
    """A job after two trainings, and its models."""
    job = Job(tmp_path_factory.mktemp("job"))
    return job, job.train(1), job.train(2)


def test_the_first_model_is_blind_to_half_the_world_and_the_second_is_not(two_rounds: tuple[Job, Path, Path]):
    _, first, second = two_rounds
    everything, low, high = reads(first)
    assert low > 90
    assert high == 0
    assert everything < 60
    everything, low, high = reads(second)
    assert everything > 85
    assert low > 90
    assert high > 85


def test_without_rehearsal_it_would_forget(two_rounds: tuple[Job, Path, Path]):
    job, _, _ = two_rounds
    _, low, high = reads(job.train(2, output="forgetful", REHEARSED=0))
    assert low < 10
    assert high > 85


def test_a_training_that_runs_again_makes_the_same_model(two_rounds: tuple[Job, Path, Path]):
    job, _, second = two_rounds
    assert job.train(2, output="again").read_bytes() == second.read_bytes()


def test_eval_chooses_the_better_model_and_of_no_samples_the_trained_one(two_rounds: tuple[Job, Path, Path]):
    job, first, second = two_rounds
    rows = (job.folder / "data/train/2/data.csv").read_text()
    assert job.evaluate(1, first, second, rows=rows) > 0.9
    assert (job.folder / "eval/1/index.pkl").read_bytes() == second.read_bytes()
    (job.folder / "deploy").mkdir()
    (job.folder / "deploy/index.pkl").write_bytes(second.read_bytes())
    job.evaluate(2, first, rows=rows)
    assert (job.folder / "eval/2/index.pkl").read_bytes() == second.read_bytes()
    assert job.evaluate(3, first, rows="") == 0
    assert (job.folder / "eval/3/index.pkl").read_bytes() == first.read_bytes()


def test_no_held_out_image_is_ever_a_sample():
    code = (
        "from digits import samples_of, split; pool, held_out = split();"
        "given = {tuple(image) for n in range(1, 12) for image in samples_of(n).images};"
        "print(len(pool), len(held_out), len(given & {tuple(image) for image in held_out.images}), len(given))"
    )
    pool, held_out, both, given = run_python(code).split()
    assert (pool, held_out, both) == ("1437", "360", "0")
    assert int(given) == int(pool)


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=EXAMPLE, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_the_manifests_are_sednas():
    dataset, job = yaml.safe_load_all((EXAMPLE / "job.yaml").read_text())
    assert Dataset.model_validate(dataset).spec.format == "csv"
    spec = LifelongLearningJob.model_validate(job).spec
    for stage, program in (
        (spec.train_spec, "train.py"),
        (spec.eval_spec, "eval.py"),
        (spec.deploy_spec, "infer.py"),
    ):
        assert stage.template
        [container] = stage.template["spec"]["containers"]
        assert (container["command"], container["args"]) == (["python"], [f"$(WORKER_PROGRAMS)/digits/{program}"])
        assert (EXAMPLE / program).is_file()
