from __future__ import annotations

import pytest
from support.given import (
    NOW,
    REGISTRY,
    STREAM,
    History,
    arrive,
    copied,
    deleted,
    facts,
    failed,
    given,
    gm,
    happened,
    ticked,
    written,
)
from support.sedna import MORE_THAN_3, condition, model, output

from lc_events.domain import events as e
from lc_events.domain.eval_file import eval_pending_count
from lc_events.domain.outcomes import record_failure, record_files, record_model
from lc_events.messages.json import JsonObject

TRAIN_WAITING = condition("Train", "Waiting", "t1")


class Rounds:
    """GM's list as it grows, round after round."""

    def __init__(self) -> None:
        self.conditions: list[JsonObject] = []

    def _add(self, stage: str, type_: str, data: JsonObject | None = None) -> list[JsonObject]:
        self.conditions.append(condition(stage, type_, f"t{len(self.conditions)}", data))
        return self.conditions

    def train(self):
        return gm(*self._add("Train", "Waiting"))

    def eval(self, round_: int):
        self._add("Train", "Completed", output(f"/output/job1/train/{round_}/index.pkl"))
        return gm(*self._add("Eval", "Waiting"))

    def eval_again(self):
        return gm(*self._add("Eval", "Waiting"))

    def deploy(self, round_: int):
        self._add("Eval", "Completed", output(f"/output/job1/eval/{round_}/index.pkl"))
        return gm(*self._add("Deploy", "Waiting"))


def test_training_triggers_when_enough_samples_are_pending():
    given(gm(TRAIN_WAITING), arrive(4)).when(arrive(1)).then(
        happened(e.SamplesArrived, train=1, eval=0, reason="fired", samples=4),
        happened(
            e.TrainingTriggered,
            round=1,
            dataset="ds",
            spooled=[[0, 3], [4, 5]],
            samples=4,
            waiting=[None, 1, "Train", "Waiting", "t1"],
            input={"dataURL": "/output/job1/data/train/1/data.txt", "outputDir": "/output/job1/train/1"},
            rules=1,
        ),
    )


def test_the_facts_of_a_training_name_all_it_rested_on():
    trigger = {**MORE_THAN_3, "timer": {"start": "00:00", "end": "24:00"}}
    (triggered,) = given(gm(TRAIN_WAITING, trigger=trigger), arrive(10)).of(e.TrainingTriggered)
    assert triggered.facts == {
        "metric": "num_of_samples",
        "value": 8,
        "operator": ">",
        "threshold": 3.0,
        "window": "00:00-24:00",
        "zone": "UTC",
    }


def test_the_written_files_are_the_report():
    history = (
        given(gm(TRAIN_WAITING), arrive(10))
        .when(written())
        .then(
            happened(
                e.TrainDataWritten,
                round=1,
                input={"dataURL": "/output/job1/data/train/1/data.txt", "outputDir": "/output/job1/train/1"},
                resource_kind="LifelongLearningJob",
            )
        )
    )
    state = history.state
    assert (state.intent, state.train_status) == (None, "completed")
    assert state.train_data_url == "/output/job1/data/train/1/data.txt"
    assert not state.is_waiting


def test_a_waiting_condition_is_answered_once():
    history = given(gm(TRAIN_WAITING), arrive(10), written())
    history.when(arrive(10)).then(happened(e.SamplesArrived, reason=None))
    history.when(ticked()).then()


def test_while_the_files_are_written_nothing_fires_again():
    history = given(gm(TRAIN_WAITING), arrive(10))
    history.when(arrive(10)).then(happened(e.SamplesArrived, reason="in_progress"))
    history.when(ticked()).then(happened(e.Ticked, reason="in_progress"))


def test_without_a_pending_sample_there_is_no_training():
    never = {"condition": {"operator": ">=", "threshold": 0, "metric": "num_of_samples"}}
    given(gm(TRAIN_WAITING, trigger=never)).when(ticked()).then(happened(e.Ticked, reason="no_samples", samples=0))


def test_a_waiting_job_without_a_sample_says_what_is_wrong_with_its_dataset():
    given(gm(TRAIN_WAITING)).when(ticked(at=facts(note="/data/ds.txt is missing"))).then(
        happened(e.Ticked, reason="dataset", note="/data/ds.txt is missing")
    )


def test_with_pending_samples_the_trigger_says_what_is_missing_not_the_dataset():
    given(gm(TRAIN_WAITING), arrive(3)).when(ticked(at=facts(note="gone"))).then(
        happened(e.Ticked, reason="samples", note=None)
    )


def test_where_all_samples_train_they_stay_one_range():
    history = given(gm(TRAIN_WAITING, train_prob=1), arrive(1), arrive(1), arrive(1)).when(arrive(1))
    assert history.decided[-1].spooled == [[0, 4]]


def test_how_far_the_spool_was_used_outlives_a_generation():
    history = given(gm(TRAIN_WAITING), arrive(10), deleted(), gm(TRAIN_WAITING))
    assert history.state.spool_ends == {"ds": 10}


def test_a_share_of_1_trains_all_and_evaluates_with_an_empty_file():
    rounds = Rounds()
    history = given(rounds.train(), gm(*rounds.conditions, train_prob=1), arrive(10), written())
    rounds.eval(1)
    history.when(gm(*rounds.conditions, train_prob=1)).then(
        happened(e.GlobalManagerMessageReceived, reason="fired", samples=0),
        happened(e.EvaluationTriggered, round=1, spooled=[], taken=[], samples=0),
    )


def test_a_share_of_0_never_trains():
    given(gm(TRAIN_WAITING, train_prob=0, trigger=None)).when(arrive(100)).then(
        happened(e.SamplesArrived, train=0, eval=100, reason="no_samples")
    )


def test_an_evaluation_takes_the_models_of_the_newest_completed_condition_with_an_output():
    conditions = [
        condition("Train", "Completed", "t1", output("/output/job1/train/1/old.pkl")),
        condition("Train", "Completed", "t2", output("/output/job1/train/2/new.pkl")),
        condition("Train", "Completed", "t3"),
        condition("Train", "Completed", "t4", "no json"),
        condition("Eval", "Waiting", "t5"),
    ]
    (triggered,) = given(gm(*conditions)).of(e.EvaluationTriggered)
    assert triggered.input["models"] == [model("/output/job1/train/2/new.pkl")]


def test_an_evaluation_without_a_model_waits_and_says_so():
    history = given(gm(condition("Train", "Completed"), condition("Eval", "Waiting", "t2")))
    history.then(happened(e.GlobalManagerMessageReceived, reason="no_model", note=None))
    history.when(ticked()).then(happened(e.Ticked, reason="no_model"))


def test_a_model_elsewhere_than_below_the_output_dir_does_not_count():
    given().when(
        gm(condition("Train", "Completed", data=output("/etc/shadow")), condition("Eval", "Waiting", "t2"))
    ).then(
        happened(
            e.GlobalManagerMessageReceived,
            reason="no_model",
            note="the trained model's URL is not below the job's outputDir",
        )
    )


def test_eval_files_repeat_the_samples_of_the_last_five_rounds_once_each():
    rounds, history, sizes = Rounds(), given(), []
    for round_ in range(1, 9):
        history = history.when(rounds.train(), arrive(10), written(), rounds.eval(round_))
        triggered = history.decided[-1]
        assert isinstance(triggered, e.EvaluationTriggered)
        assert triggered.round == round_
        assert triggered.taken == [[10 * round_ - 2, 10 * round_]]
        sizes.append(triggered.samples)
        history = history.when(written(), rounds.deploy(round_), copied())
    assert sizes == [2, 4, 6, 8, 10, 10, 10, 10]
    assert history.of(e.EvaluationTriggered)[-1].spooled == [[38, 40], [48, 50], [58, 60], [68, 70], [78, 80]]


def test_a_round_that_was_never_evaluated_counts_in_the_window():
    rounds = Rounds()
    history = given(rounds.train(), arrive(10), written(), rounds.eval(1), written())
    for _ in range(5):
        history = history.when(rounds.train(), arrive(10), written())
    assert history.when(rounds.eval(6)).decided[-1].samples == 10


def test_evaluating_a_round_again_keeps_its_samples_and_adds_the_new_ones():
    rounds = Rounds()
    history = given(rounds.train(), arrive(10), written(), rounds.eval(1), written(), arrive(10))
    history.when(rounds.eval_again()).then(
        happened(e.GlobalManagerMessageReceived),
        happened(e.EvaluationTriggered, round=1, spooled=[[8, 10], [18, 20]], taken=[[18, 20]]),
    )


def test_samples_that_arrive_after_the_decision_belong_to_the_next_round():
    rounds = Rounds()
    history = given(rounds.train(), arrive(10), written(), rounds.eval(1), arrive(10), written())
    history = history.when(rounds.train(), written(), rounds.eval(2))
    assert history.decided[-1].taken == [[18, 20]]


def csv(count: int, header: str):
    return arrive(count, header=header, url="/data/ds.csv")


def test_a_csv_round_never_mixes_two_headers():
    rounds = Rounds()
    history = given(rounds.train(), csv(5, "a,b"), written(), rounds.eval(1), written())
    history = history.when(csv(5, "a,b"), csv(10, "a,b,c"), rounds.train())
    first = history.decided[-1]
    assert (first.spooled, first.header, first.samples) == ([[5, 9]], "a,b", 4)
    history = history.when(written(), rounds.eval(2))
    evaluated = history.decided[-1]
    assert (evaluated.spooled, evaluated.header) == ([[4, 5], [9, 10]], "a,b")
    history = history.when(written(), rounds.train())
    second = history.decided[-1]
    assert (second.spooled, second.header) == ([[10, 18]], "a,b,c")
    evaluated = history.when(written(), rounds.eval(3)).decided[-1]
    assert (evaluated.spooled, evaluated.taken, evaluated.header) == ([[18, 20]], [[18, 20]], "a,b,c")
    assert evaluated.input["dataURL"] == "/output/job1/data/eval/3/data.csv"


def test_samples_of_a_header_that_comes_back_are_evaluated_beside_the_older_ones():
    rounds = Rounds()
    history = given(rounds.train(), csv(10, "a,b"), written(), rounds.eval(1), written())
    history = history.when(csv(10, "a,b,c"), rounds.train(), written(), rounds.eval(2), written())
    history = history.when(csv(10, "a,b"), rounds.train(), written(), rounds.eval(3))
    assert (history.decided[-1].spooled, history.decided[-1].header) == ([[8, 10], [28, 30]], "a,b")
    assert len(history.state.sources) == 2


def test_evaluating_a_round_again_does_not_mix_in_another_header():
    rounds = Rounds()
    history = given(rounds.train(), csv(10, "a,b"), written(), rounds.eval(1), written(), csv(10, "a,b,c"))
    again = history.when(rounds.eval_again()).decided[-1]
    assert (again.spooled, again.taken, again.header) == ([[8, 10]], [], "a,b")


def test_what_the_view_says_is_pending_is_what_the_next_eval_file_holds():
    rounds = Rounds()
    history = given(rounds.train(), csv(10, "a,b"), written(), rounds.eval(1), written(), csv(10, "a,b,c"))
    history = history.when(rounds.train(), written())
    announced = eval_pending_count(history.state)
    assert history.when(rounds.eval(2)).decided[-1].samples == announced == 2


@pytest.mark.parametrize("steps", range(6))
def test_at_any_moment_the_announced_eval_file_is_the_next_one(steps: int):
    rounds, history = Rounds(), given()
    for round_ in range(1, 7):
        history = history.when(rounds.train(), arrive(10), written(), rounds.eval(round_), written())
    for step in [rounds.train(), arrive(10), written(), ticked(), arrive(5)][:steps]:
        history = history.when(step)
    announced, before = eval_pending_count(history.state), history.state.eval_pending
    remaining = [arrive(5), written()] if history.state.is_waiting and history.state.intent is None else []
    remaining = [written()] if history.state.intent is not None else remaining
    if steps == 0:
        remaining = [rounds.train(), arrive(10), written()]
    decided = history.when(*remaining, rounds.eval(7)).decided[-1]
    added = sum(last - first for first, last in decided.taken) - sum(r.size for r in before)
    assert decided.samples == announced + added


def test_a_txt_dataset_in_place_of_a_csv_one_has_no_header():
    rounds = Rounds()
    history = given(rounds.train(), csv(10, "a,b"), written(), arrive(10), rounds.train())
    triggered = history.decided[-1]
    assert triggered.header is None
    assert triggered.input["dataURL"] == "/output/job1/data/train/2/data.txt"


def test_a_txt_dataset_in_s3_has_an_index_file_beside_it():
    (triggered,) = given(gm(TRAIN_WAITING), arrive(10, url="s3://bkt/data/ds.txt")).of(e.TrainingTriggered)
    assert triggered.input == {
        "dataURL": "/output/job1/data/train/1/data.txt",
        "dataIndexURL": "/output/job1/data/train/1/dataIndex.txt",
        "outputDir": "/output/job1/train/1",
    }


def test_another_dataset_is_counted_from_its_beginning_and_files_do_not_mix_the_two():
    rounds = Rounds()
    history = given(rounds.train(), arrive(4), gm(*rounds.conditions, dataset="other"))
    assert history.state.place is None
    (triggered,) = history.when(arrive(10)).of(e.TrainingTriggered)
    assert (triggered.dataset, triggered.spooled) == ("ds", [[0, 3]])


def test_a_changed_share_applies_from_the_message_on():
    history = given(gm(TRAIN_WAITING, trigger={"condition": {"operator": ">", "threshold": 99}}))
    slow = {"condition": {"operator": ">", "threshold": 99, "metric": "num_of_samples"}}
    history = given(gm(TRAIN_WAITING, trigger=slow), arrive(3), gm(TRAIN_WAITING, trigger=slow, train_prob=0.5))
    history.when(arrive(1)).then(happened(e.SamplesArrived, train=0, eval=1))
    history.when(arrive(1), arrive(1)).then(happened(e.SamplesArrived, train=1, eval=0))


def test_deployment_copies_the_first_evaluated_model_and_reports_the_source():
    rounds = Rounds()
    history = given(rounds.train(), arrive(10), written(), rounds.eval(1), written())
    history = history.when(rounds.deploy(1)).then(
        happened(e.GlobalManagerMessageReceived, reason="fired"),
        happened(
            e.DeployTriggered,
            round=1,
            model={"format": "pkl", "url": "/output/job1/eval/1/index.pkl", "classes": None},
            target="/output/job1/deploy/index.pkl",
        ),
    )
    history = history.when(copied()).then(
        happened(
            e.ModelDeployed,
            round=1,
            url="/output/job1/deploy/index.pkl",
            model={"format": "pkl", "url": "/output/job1/eval/1/index.pkl", "classes": None},
        )
    )
    assert history.state.model == {
        "round": 1,
        "url": "/output/job1/deploy/index.pkl",
        "format": "pkl",
        "sha256": "0" * 64,
        "size": 100,
        "time": NOW,
    }
    assert history.state.deploy_status == "completed"


def test_deployment_without_a_model_is_completed_at_once():
    history = (
        given()
        .when(gm(condition("Deploy", "Waiting", "t1")))
        .then(happened(e.GlobalManagerMessageReceived), happened(e.DeployTriggered, model=None, target=None))
    )
    state = history.state
    assert (state.intent, state.deploy_status, state.model) == (None, "completed", None)
    assert not state.is_waiting


DEPLOYING = (
    condition("Eval", "Completed", "t1", output("/output/job1/gone.pkl")),
    condition("Deploy", "Waiting", "t2"),
)


def test_a_failure_is_recorded_first_when_it_changes_and_then_hourly():
    history = given(gm(TRAIN_WAITING), arrive(10))
    history = history.when(failed("no_space", "disk full")).then(
        happened(e.TriggerFailed, stage="Train", round=1, attempt=1, code="no_space", final=False)
    )
    history.when(failed("no_space", "disk full", attempt=2, now="2024-01-01T00:59:59.000000Z")).then()
    history.when(failed("no_space", "disk full", attempt=9, now="2024-01-01T01:00:00.000000Z")).then(
        happened(e.TriggerFailed, attempt=9)
    )
    history.when(failed("denied", "no", attempt=2)).then(happened(e.TriggerFailed, code="denied"))
    assert history.state.failure is not None
    assert history.when(written()).state.failure is None


def test_a_model_that_does_not_exist_is_reported_as_failed():
    history = (
        given(gm(*DEPLOYING))
        .when(failed(final=True))
        .then(
            happened(
                e.TriggerFailed,
                final=True,
                model={"format": "pkl", "url": "/output/job1/gone.pkl", "classes": None},
                resource_kind="LifelongLearningJob",
            )
        )
    )
    assert (history.state.intent, history.state.deploy_status, history.state.model) == (None, "completed", None)
    assert not history.state.is_waiting


def test_samples_that_cannot_be_written_are_never_given_up():
    history = (
        given(gm(TRAIN_WAITING), arrive(10))
        .when(failed(final=True))
        .then(happened(e.TriggerFailed, stage="Train", final=False))
    )
    assert history.state.intent is not None
    assert history.state.is_waiting


def late(history: History) -> int:
    assert history.state.intent is not None
    return history.state.intent.version


def test_an_answer_to_another_intent_is_ignored():
    training = given(gm(TRAIN_WAITING), arrive(10))
    training.when(lambda s: record_files(s, "Train", 2, [], NOW)).then()
    training.when(lambda s: record_files(s, "Eval", 1, [], NOW)).then()
    training.when(lambda s: record_model(s, 1, url="/x", sha256="", size=0, now=NOW)).then()
    given(gm(TRAIN_WAITING)).when(failed()).then()
    given(gm(*DEPLOYING)).when(lambda s: record_files(s, "Deploy", 0, [], NOW)).then()


def test_an_answer_of_the_life_before_is_not_taken_for_one_of_this_life():
    before = given(gm(TRAIN_WAITING), arrive(10))
    version = late(before)
    history = before.when(deleted(), gm(TRAIN_WAITING), arrive(10))
    assert history.state.intent is not None
    assert history.state.intent.round == 1
    history.when(lambda s: record_files(s, "Train", 1, [], NOW, intent=version)).then()
    history.when(
        lambda s: record_failure(s, "Train", 1, attempt=1, code="c", error="e", final=False, now=NOW, intent=version)
    ).then()
    history.when(lambda s: record_files(s, "Train", 1, [], NOW, intent=late(history))).then(
        happened(e.TrainDataWritten)
    )


def test_samples_of_a_deleted_job_are_not_counted():
    given(gm(TRAIN_WAITING), deleted()).when(arrive(10)).then()


def test_a_failed_training_is_not_trained_again_and_the_job_waits_for_new_samples():
    rounds = Rounds()
    history = given(rounds.train(), arrive(10), written())
    history = history.when(
        gm(*rounds.conditions, condition("Train", "Failed", "t1"), condition("Train", "Waiting", "t2"))
    )
    history.then(happened(e.GlobalManagerMessageReceived, reason="no_samples"))
    assert history.when(arrive(10)).decided[-1].spooled == [[10, 18]]


def test_an_idle_tick_is_stored_in_120_bytes():
    import orjson

    idle = given(gm(TRAIN_WAITING)).when(ticked())
    (tick,) = idle.decided
    assert len(orjson.dumps(REGISTRY.stored(tick))) <= 120
    below_threshold = given(gm(TRAIN_WAITING), arrive(4)).when(ticked())
    assert len(orjson.dumps(REGISTRY.stored(below_threshold.decided[0]))) <= 120


def test_only_decisions_at_eval_name_rules_of_their_own():
    rounds = Rounds()
    history = given(
        rounds.train(), arrive(10), ticked(), written(), rounds.eval(1), ticked(), written(), rounds.deploy(1)
    )
    named = [(type(event), event.rules) for event in history.events if "rules" in REGISTRY.stored(event)]
    assert named == [(e.GlobalManagerMessageReceived, 2), (e.EvaluationTriggered, 2), (e.Ticked, 2)]


def test_the_rules_of_a_decision_are_those_it_followed_whatever_the_code_follows_today():
    old = {"round": 1, "waiting": [], "dataset": "ds", "spooled": [], "samples": 0, "input": {}, "facts": {}}
    event = e.TrainingTriggered(originator_id=STREAM, originator_version=1, time=NOW, **old)
    assert event.rules == 1
    assert "rules" not in REGISTRY.stored(event)
