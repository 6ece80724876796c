from __future__ import annotations

import pytest
from support.given import Command, History, arrive, deleted, facts, given, gm, happened, ticked
from support.sedna import condition, model, output

from lc_events.domain import events as e
from lc_events.messages.model_places import lies_in

PLACES = ("/models", "s3://models/released")
OUTSIDE = "the trained model's URL is not below the job's outputDir"


def trained(*urls: str, places: tuple[str, ...] = (), **resource: str) -> Command:
    """GM says that a model was trained and waits for its evaluation."""
    stand = condition("Train", "Completed", "t1", output(*urls)), condition("Eval", "Waiting", "t2")
    return gm(*stand, at=facts(places=places), **resource)


def evaluated_models(history: History) -> list[str]:
    (triggered,) = history.of(e.EvaluationTriggered)
    return [model["url"] for model in triggered.input["models"]]


@pytest.mark.parametrize("url", ["/models/m.pkl", "s3://models/released/m.pkl"])
@pytest.mark.parametrize("output_dir", ["/output/job1", "s3://bkt/out"])
def test_a_model_in_a_place_of_the_node_is_evaluated(url: str, output_dir: str):
    history = given(trained(url, places=PLACES, output_dir=output_dir))
    history.then(
        happened(e.GlobalManagerMessageReceived, reason="fired", model_places=list(PLACES)),
        happened(e.EvaluationTriggered),
    )
    assert evaluated_models(history) == [url]


@pytest.mark.parametrize(
    "url",
    [
        *("/etc/shadow", "/models", "/models2/m.pkl", "/models/../etc/shadow", "models/m.pkl"),
        *("s3://models/m.pkl", "s3://models/released", "s3://models/released2/m.pkl", "s3://other/released/m.pkl"),
        *("s3://models/released/../m.pkl", "s3://models/released/%2e%2e/m.pkl"),
    ],
)
def test_a_model_elsewhere_does_not_count(url: str):
    given(trained(url, places=PLACES)).then(happened(e.GlobalManagerMessageReceived, reason="no_model", note=OUTSIDE))


CLIMBING = (
    *("s3://bkt/out/%2e%2e/m.pkl", "s3://bkt/out/a/%252E./m.pkl", "s3://bkt/out/../m.pkl", "s3://bkt/out/a/"),
    *("/output/job1/a/../m.pkl", "/output/job1/%2e%2e/m.pkl", f"/output/job1/{'a/' * 2048}m.pkl"),
)


@pytest.mark.parametrize("url", CLIMBING)
def test_below_the_output_dir_is_what_would_lie_in_a_place_there(url: str):
    """Else a model would be evaluated, and refused when it is to be deployed."""
    output_dir = "s3://bkt/out" if url.startswith("s3://") else "/output/job1"
    history = given(trained(url, output_dir=output_dir))
    history.then(happened(e.GlobalManagerMessageReceived, reason="no_model", note=OUTSIDE, rules=2))
    history = given(trained(url, f"{output_dir}/m.pkl", output_dir=output_dir))
    history.then(happened(e.GlobalManagerMessageReceived, reason="fired"), happened(e.EvaluationTriggered, rules=2))
    assert evaluated_models(history) == [f"{output_dir}/m.pkl"]


def test_what_counts_is_read_once_however_often_a_job_is_judged(monkeypatch):
    urls = [f"/output/job1/{number}/read-once/%2e%2e/m.pkl" for number in range(100)]
    read = []
    monkeypatch.setattr(
        "lc_events.domain.decisions.lies_in", lambda url, place: read.append(url) or lies_in(url, place)
    )

    history = given(trained(*urls), *[ticked(), arrive(1)] * 5)

    assert history.state.verdict.reason == "no_model"
    assert read == urls


def test_by_rules_1_it_was_what_stands_below_it_by_its_words():
    for url in CLIMBING:
        stand = condition("Train", "Completed", "t1", output(url)), condition("Eval", "Waiting", "t2")
        output_dir = "s3://bkt/out" if url.startswith("s3://") else "/output/job1"
        history = given(gm(*stand, at=facts(rules=1), output_dir=output_dir))
        if url == "s3://bkt/out/../m.pkl":
            history.then(happened(e.GlobalManagerMessageReceived, reason="no_model", rules=1))
        else:
            history.then(happened(e.GlobalManagerMessageReceived, rules=1), happened(e.EvaluationTriggered, rules=1))


def test_of_several_models_those_that_count_are_evaluated():
    history = given(trained("/etc/shadow", "/models/m.pkl", "/output/job1/m.pkl", places=PLACES))
    assert evaluated_models(history) == ["/models/m.pkl", "/output/job1/m.pkl"]


def test_without_places_only_the_output_dir_counts():
    given(trained("/models/m.pkl")).then(
        happened(e.GlobalManagerMessageReceived, reason="no_model", note=OUTSIDE, model_places=None)
    )


def test_a_place_that_is_named_at_a_restart_counts_from_its_tick_on_and_is_told_once():
    history = given(trained("/models/m.pkl"), ticked()).then(happened(e.Ticked, reason="no_model", model_places=None))
    history = history.when(ticked("restart", at=facts(places=PLACES)))
    history.then(happened(e.Ticked, reason="fired", model_places=list(PLACES)), happened(e.EvaluationTriggered))
    assert evaluated_models(history) == ["/models/m.pkl"]
    history = history.when(trained("/models/m.pkl", places=PLACES))
    history.then(happened(e.GlobalManagerMessageReceived, model_places=None))
    assert history.replayed() == history.state


def test_a_place_that_is_taken_away_counts_no_more():
    history = given(gm(condition("Train", "Waiting", "t0"), at=facts(places=PLACES)), trained("/models/m.pkl"))
    history.then(happened(e.GlobalManagerMessageReceived, reason="no_model", note=OUTSIDE, model_places=[]))
    assert history.state.model_places == history.replayed().model_places == ()


def test_samples_are_judged_by_the_places_that_are_known():
    history = given(trained("/etc/shadow", places=PLACES), arrive(4))
    history.then(happened(e.SamplesArrived, reason="no_model"))
    assert history.state.verdict is not None
    assert history.state.verdict.note == OUTSIDE
    assert history.replayed() == history.state


def test_places_are_the_nodes_and_outlive_a_job():
    history = given(trained("/models/m.pkl", places=PLACES), deleted())
    history = history.when(trained("/models/m.pkl", places=PLACES))
    history.then(
        happened(e.GlobalManagerMessageReceived, reason="fired", generation=2, model_places=None),
        happened(e.EvaluationTriggered),
    )


def test_a_decision_to_deploy_holds_the_model_wherever_it_lies():
    stand = condition("Eval", "Completed", "t1", output("/models/m.pkl")), condition("Deploy", "Waiting", "t2")
    given(gm(*stand, at=facts(places=PLACES))).then(
        happened(e.GlobalManagerMessageReceived, reason="fired"),
        happened(e.DeployTriggered, model={"format": "pkl", "url": model("/models/m.pkl")["url"], "classes": None}),
    )
