from __future__ import annotations

from typing import Any

import pytest
from support.gm import job_manifest, template

from lc_events.errors import RefusedError
from lc_events.gm.requests import read_identity, read_request, read_resource

DATASET: dict[str, Any] = {
    "apiVersion": "sedna.io/v1alpha1",
    "kind": "Dataset",
    "metadata": {"name": "ds", "namespace": ""},
    "spec": {"url": "/data/ds.txt", "format": "txt", "nodeName": "edge1"},
}


def test_a_manifest_names_its_stream() -> None:
    assert read_resource(DATASET).stream == "default/dataset/ds"
    assert read_resource(job_manifest()).stream == "default/lifelonglearningjob/job1"
    assert read_identity({"kind": "Dataset", "metadata": {"name": "ds"}}).stream == "default/dataset/ds"


def _dataset(**spec: object) -> dict[str, Any]:
    return {**DATASET, "spec": {**DATASET["spec"], **spec}}


@pytest.mark.parametrize(
    ("manifest", "code", "words"),
    [
        ({**DATASET, "kind": "Secret"}, "kind", "'Secret' is not LifelongLearningJob or Dataset"),
        ({**DATASET, "kind": 3}, "invalid", "kind"),
        ({**DATASET, "metadata": {"name": "Not_A_Name"}}, "invalid", "metadata.name"),
        (_dataset(nodeName=None), "invalid", "spec.nodeName"),
        (_dataset(nodeName="gm"), "invalid", "spec.nodeName"),
        (_dataset(nodeName="a/b"), "invalid", "spec.nodeName"),
        (_dataset(format="xml"), "invalid", "spec.format"),
        (job_manifest(outputDir="/../.."), "invalid", "spec.outputDir"),
        (job_manifest(dataset={"name": "ds", "trainProb": 2}), "invalid", "spec.dataset.trainProb"),
        (job_manifest(trainSpec=template("a#b")), "invalid", "spec.trainSpec.template.spec.nodeName"),
        (job_manifest(evalSpec=template(command=[])), "invalid", "spec.evalSpec.template.spec.containers.0.command"),
        (
            job_manifest(deploySpec=template(env=[{"name": "N", "value": 3}])),
            "invalid",
            "spec.deploySpec.template.spec.containers.0.env.0.value",
        ),
    ],
)
def test_a_bad_manifest_is_refused_with_the_place_of_its_fault(manifest: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(RefusedError) as refused:
        read_resource(manifest)
    assert refused.value.code == code
    assert words in str(refused.value)


def test_a_value_that_may_be_a_secret_is_not_repeated_in_the_refusal() -> None:
    with pytest.raises(RefusedError) as refused:
        read_resource(job_manifest(trainSpec=template(env=[{"name": "TOKEN", "value": ["hunter2"]}])))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("data", [{}, {"operation": "update", "resource": {}}, {"operation": "insert", "resource": 3}])
def test_a_request_that_is_none_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        read_request(data)
