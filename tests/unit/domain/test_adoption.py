from __future__ import annotations

import pytest
from support.given import arrive, deleted, given, gm, happened, ticked, written
from support.sedna import condition, output

from lc_events.domain import events as e
from lc_events.messages.json import JsonObject


def ready(round_: int, name: str = "data.txt") -> JsonObject:
    url = f"/output/job1/data/train/{round_}/{name}"
    return condition("Train", "Ready", f"r{round_}", {"input": {"dataURL": url}})


TRAINED = condition("Train", "Completed", "t4", output("/output/job1/train/7/index.pkl"))
EVAL_WAITING = condition("Eval", "Waiting", "t5")


def test_a_job_that_another_controller_began_goes_on_from_its_round():
    history = (
        given()
        .when(gm(ready(6), ready(7), condition("Train", "Waiting", "t9")))
        .then(
            happened(e.GlobalManagerMessageReceived, generation=1, reason=None),
            happened(e.JobAdopted, round=7, train_data_url="/output/job1/data/train/7/data.txt", format="txt"),
            happened(e.Ticked, cause="adopted", reason="no_samples"),
        )
    )
    history = history.when(arrive(100), arrive(10))
    (triggered,) = history.of(e.TrainingTriggered)
    assert triggered.round == 8


def test_counting_starts_at_the_datasets_present_end():
    history = (
        given(gm(ready(7), condition("Train", "Waiting", "t9")))
        .when(arrive(100))
        .then(happened(e.SamplesArrived, spooled=None, train=0, eval=0, rows=[0, 100], reason="no_samples"))
    )
    assert history.state.seen == 0
    assert history.state.place is not None
    assert history.state.place.rows == 100
    history.when(arrive(10)).then(
        happened(e.SamplesArrived, train=8, eval=2, rows=[100, 110]), happened(e.TrainingTriggered, round=8)
    )


def test_standing_at_eval_waiting_the_existing_file_is_reported():
    history = given().when(gm(ready(7), TRAINED, EVAL_WAITING))
    assert [type(event) for event in history.decided] == [
        e.GlobalManagerMessageReceived,
        e.JobAdopted,
        e.Ticked,
        e.EvaluationTriggered,
    ]
    triggered = history.decided[-1]
    assert isinstance(triggered, e.EvaluationTriggered)
    assert (triggered.round, triggered.existing, triggered.spooled) == (7, True, [])
    assert triggered.input["dataURL"] == "/output/job1/data/eval/7/data.txt"


def test_samples_that_come_before_the_existing_file_is_reported_wait_for_the_next_round():
    without_model = condition("Train", "Completed", "t4")
    history = given(gm(ready(7), without_model, EVAL_WAITING), arrive(100), arrive(10))
    history = history.when(gm(ready(7), TRAINED, EVAL_WAITING))
    existing = history.decided[-1]
    assert isinstance(existing, e.EvaluationTriggered)
    assert (existing.existing, existing.taken, existing.spooled) == (True, [], [])
    train_waiting = condition("Train", "Waiting", "t6")
    history = history.when(written(), gm(ready(7), TRAINED, EVAL_WAITING, train_waiting), written())
    history = history.when(
        gm(ready(7), TRAINED, EVAL_WAITING, train_waiting, TRAINED, condition("Eval", "Waiting", "t8"))
    )
    assert history.decided[-1].taken == [[8, 10]]


def test_a_csv_file_is_adopted_as_csv():
    (triggered,) = given(gm(ready(7, "data.csv"), TRAINED, EVAL_WAITING)).of(e.EvaluationTriggered)
    assert triggered.input["dataURL"] == "/output/job1/data/eval/7/data.csv"


def test_adopted_while_it_trains_the_eval_file_is_ours_to_write():
    history = given(gm(ready(7), condition("Train", "Running", "t3"))).then(
        happened(e.GlobalManagerMessageReceived, reason=None), happened(e.JobAdopted, round=7)
    )
    history = history.when(
        arrive(100), arrive(10), gm(ready(7), condition("Train", "Running", "t3"), TRAINED, EVAL_WAITING)
    )
    triggered = history.decided[-1]
    assert isinstance(triggered, e.EvaluationTriggered)
    assert (triggered.existing, triggered.taken) == (False, [[8, 10]])


@pytest.mark.parametrize(
    ("last", "statuses"),
    [
        (condition("Train", "Waiting"), ("ready", "ready", "ready")),
        (condition("Train", "Ready"), ("completed", "ready", "ready")),
        (condition("Train", "Running"), ("completed", "ready", "ready")),
        (condition("Eval", "Waiting"), ("completed", "ready", "ready")),
        (condition("Eval", "Starting"), ("completed", "completed", "ready")),
        (condition("Deploy", "Ready"), ("completed", "completed", "completed")),
    ],
)
def test_what_the_other_controller_reported_is_completed(last: JsonObject, statuses: tuple[str, str, str]):
    state = given(gm(ready(7), last)).state
    assert (state.train_status, state.eval_status, state.deploy_status) == statuses


def test_a_job_that_was_only_deleted_here_before_is_adopted_too():
    given(deleted()).when(gm(ready(7), condition("Train", "Running"))).then(
        happened(e.GlobalManagerMessageReceived, generation=1), happened(e.JobAdopted, round=7)
    )


def test_a_job_that_was_here_before_is_not_adopted():
    history = given(gm(condition("Train", "Waiting", "t1")), deleted()).when(
        gm(ready(7), condition("Train", "Waiting"))
    )
    assert history.of(e.JobAdopted) == []
    assert history.state.round == 0


def test_a_train_ready_without_data_is_nothing_to_adopt():
    assert given(gm(condition("Train", "Ready"))).of(e.JobAdopted) == []


def test_another_dataset_of_an_adopted_job_counts_whole():
    waiting = condition("Train", "Waiting", "t9")
    history = given(gm(ready(7), waiting), arrive(100), gm(ready(7), waiting, dataset="other"))
    history.when(arrive(10)).then(happened(e.SamplesArrived, train=8, eval=2), happened(e.TrainingTriggered))


def test_an_adopted_job_is_not_ticked_while_it_runs():
    given(gm(ready(7), condition("Train", "Running"))).when(ticked()).then()
