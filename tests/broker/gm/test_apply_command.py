from __future__ import annotations

import json

import pytest
from support.gm import job_manifest

from lc_events.cli.main import main


@pytest.fixture
def apply(cloud, capsys):
    """Run `apply` against the global manager; its exit code and lines, errors behind the others."""

    def run(*args: object) -> tuple[int, list[str]]:
        with pytest.raises(SystemExit) as ended:
            main(["apply", "--mqtt-url", cloud.broker.url, "--topic-root", cloud.root, *map(str, args)])
        return int(ended.value.code or 0), "".join(capsys.readouterr()).splitlines()

    return run


@pytest.fixture
def files(tmp_path, dataset):
    """A dataset and a job, each in a file of its own; JSON is YAML."""
    found = {"ds": dataset, "job": job_manifest(), "bad": {**job_manifest(), "kind": "Secret"}}
    for name, resource in found.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(resource))
    return {name: tmp_path / f"{name}.yaml" for name in found}


def test_several_files_are_applied_in_their_order(cloud, apply, files) -> None:
    cloud.start()
    assert apply("-f", files["ds"], "-f", files["job"]) == (
        0,
        ["dataset/default/ds created", "lifelonglearningjob/default/job1 created"],
    )


@pytest.mark.parametrize("second", ["bad", "none"])
def test_nothing_is_applied_if_one_of_the_files_is_wrong(cloud, apply, files, tmp_path, second) -> None:
    cloud.start()
    wrong = files.get(second, tmp_path / "none.yaml")
    code, lines = apply("-f", wrong, "-f", files["ds"])
    assert code != 0
    assert str(wrong) in lines[-1]
    assert apply("-f", files["ds"]) == (0, ["dataset/default/ds created"])
