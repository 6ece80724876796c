from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate

import pytest
from support.given import deleted, failed, reported, written
from support.rounds import Rounds, two_rounds
from support.sedna import DATASET, dataset_resource, down
from support.stores import stored

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.narration import narrate
from lc_events.application.audit.why import why
from lc_events.application.journal import open_journal
from lc_events.domain import events as e
from lc_events.domain.dataset import DatasetState, receive_dataset_message
from lc_events.domain.pauses import pause_after
from lc_events.errors import NotFoundError, UsageError

AT_LEAST_500 = {"operator": ">=", "threshold": 500, "metric": "num_of_samples"}
NIGHT = {"timer": {"start": "01:00", "end": "05:00"}, "condition": AT_LEAST_500}
TRAINING_FACTS = ("metric", "value", "operator", "threshold", "window")


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def began(text):
    return datetime.fromisoformat(f"{text}Z")


def rounds_of_night(*, now="2024-01-01T18:00:00"):
    """A job that trains at night in Berlin, on 500 samples of 625."""
    return Rounds(zone="Europe/Berlin", began=began(now), trigger=NIGHT)


def test_a_window_that_closed_with_too_few_samples_is_named_with_its_end(ask):
    rounds = rounds_of_night().arrive(515).wait(13 * 60).ticked()
    answer = ask(rounds)

    assert answer.sentence == (
        "Round 1 did not fire last night: the window closed at 05:00 with 412 of 500 samples; "
        "it opens again at 01:00 tomorrow."
    )
    assert answer.facts["waits_for"] == "samples"
    assert answer.facts["window_closed"] == "2024-01-02T04:00:00Z"
    assert {name: answer.facts[name] for name in TRAINING_FACTS} == {
        "metric": "num_of_samples",
        "value": 412,
        "operator": ">=",
        "threshold": 500.0,
        "window": "01:00-05:00",
    }


def test_what_came_after_the_window_closed_is_told(ask):
    rounds = rounds_of_night().arrive(515).wait(13 * 60).arrive(200)

    assert ask(rounds).sentence == (
        "Round 1 did not fire last night: the window closed at 05:00 with 412 of 500 samples; "
        "now 572 of 500 samples are pending; it opens again at 01:00 tomorrow."
    )


def test_a_window_that_did_not_open_yet(ask):
    rounds = rounds_of_night().arrive(800)
    answer = ask(rounds)

    assert answer.sentence == (
        "Round 1 has not fired: 640 of 500 samples are pending, and its window 01:00-05:00 (Europe/Berlin) is closed; "
        "it opens again at 01:00 tomorrow."
    )
    assert answer.facts["waits_for"] == "window"
    assert answer.facts["window_opens"] == "2024-01-02T00:00:00Z"


def test_an_open_window_and_too_few_samples(ask):
    rounds = rounds_of_night(now="2024-01-02T02:00:00").arrive(100)

    assert ask(rounds).sentence == (
        "Round 1 has not fired yet: its window 01:00-05:00, which closes at 05:00, is open, "
        "and 80 of 500 samples are pending."
    )


def test_too_few_samples_without_a_window(ask):
    answer = ask(Rounds().arrive(2))

    assert answer.sentence == "Round 1 has not fired: 1 sample is pending, more than 3 needed."
    assert answer.facts["seconds"] == 60.0


def test_nothing_pending(ask):
    assert ask(Rounds()).sentence == (
        "Round 1 has not fired: no train sample is pending, and the dataset ds gave none yet."
    )


def test_no_sample_ever_trains_with_a_probability_of_0(ask):
    assert "trainProb 0 has all samples evaluate" in ask(Rounds(train_prob=0).arrive(9)).sentence


def test_a_metric_that_is_not_known_here_never_fires(ask):
    trigger = {"condition": {"operator": ">", "threshold": 0, "metric": "accuracy"}}

    answer = ask(Rounds(trigger=trigger).arrive(9))

    assert answer.sentence == "Round 1 never fires: the metric 'accuracy' is not known here: it never fires."
    assert answer.facts["metric"] == "accuracy"


def test_a_round_that_fired_and_is_being_written(ask):
    answer = ask(Rounds().arrive(9))

    assert answer.sentence == "Round 1 fired at 00:02: num_of_samples 7 is > 3; its train file is being written."
    assert answer.facts["waits_for"] == "storage"
    assert {name: answer.facts[name] for name in TRAINING_FACTS} == {
        "metric": "num_of_samples",
        "value": 7,
        "operator": ">",
        "threshold": 3.0,
        "window": None,
    }


def test_a_file_that_cannot_be_written_is_told_with_its_error_and_the_next_try(ask):
    rounds = Rounds().arrive(9)
    failing = rounds.wait().then(failed("full", "no space left on /output", attempt=1, now=rounds.time))

    answer = ask(failing, later=timedelta(seconds=65))

    assert answer.sentence == (
        "Round 1 fired at 00:02: num_of_samples 7 is > 3, but its train file could not be written since 00:03: "
        "no space left on /output; it is tried again within 60 s."
    )
    assert answer.facts["waits_for"] == "storage"
    assert answer.facts["next_try"] == "2024-01-01T00:05:03.000000Z"


@pytest.mark.parametrize("seconds", [0, 1, 2, 3, 62, 63, 123, 200])
def test_the_next_try_comes_when_the_pauses_of_effects_say_so(ask, seconds):
    rounds = Rounds().arrive(9)
    rounds.wait().then(failed("full", "no space left on /output", attempt=1, now=rounds.time))
    tries = accumulate(pause_after(attempt) for attempt in range(1, 20))

    answer = ask(rounds, later=timedelta(seconds=seconds))

    expected = next(at for at in tries if at > seconds)
    assert answer.facts["next_try"] == stamp(rounds.now + timedelta(seconds=expected))


def test_a_report_that_gm_did_not_confirm(ask):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time))

    answer = ask(rounds)

    assert answer.sentence == (
        "Round 1 fired at 00:02: num_of_samples 7 is > 3; "
        "that was reported at 00:03, and the global manager has not confirmed it yet."
    )
    assert answer.facts["confirmed"] is False


@pytest.mark.parametrize(
    ("stages", "waits_for", "text"),
    [
        (["Train/Ready"], "global manager", "the global manager is to start a worker, for 4 min now"),
        (["Train/Ready", "Train/Starting"], "worker", "its worker has been starting for 4 min"),
        (["Train/Ready", "Train/Running"], "worker", "its worker has been running for 4 min"),
        (["Train/Running", "Train/Failed"], "global manager", "Train failed 4 min ago"),
        (["Train/Running", "Train/Completed"], "global manager", "it has stood at Train/Completed for 4 min"),
    ],
)
def test_whose_turn_it_is_after_the_report(ask, stages, waits_for, text):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told(*stages)

    answer = ask(rounds, later=timedelta(minutes=4))

    assert answer.facts["waits_for"] == waits_for
    assert text in answer.sentence
    assert set(TRAINING_FACTS) <= answer.facts.keys()


def test_a_worker_that_is_done_waits_for_gm(ask):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Ready", "Train/Running").worker("train", "completed")

    answer = ask(rounds)

    assert answer.sentence.endswith("worker w1 reported train completed at 00:05, and the global manager is to go on.")


def test_an_evaluation_without_a_model(ask):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Completed", "Eval/Waiting")

    answer = ask(rounds)

    assert answer.sentence == "Round 1 has no Eval yet: no Train/Completed condition names a model."
    assert answer.facts["waits_for"] == "global manager"


def test_an_evaluation_of_a_model_that_does_not_count(ask):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Train/Completed", "Eval/Waiting", urls=("/models/m.pkl",))

    assert ask(rounds.arrive(4)).sentence == (
        "Round 1 has no Eval yet: the trained model's URL is not below the job's outputDir, "
        "nor in a place that LC_MODEL_PLACES names."
    )


def test_a_model_that_was_given_up_is_told_with_its_reason(ask):
    words = "/models/m.pkl lies neither below the job's outputDir /output/job1 nor in a place that …"
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Eval/Completed", "Deploy/Waiting", urls=("/models/m.pkl",))
    rounds.wait().then(failed("outside", words, final=True, now=rounds.time))

    assert ask(rounds).sentence == (
        f"The model of round 1 is not deployed: {words}; that was reported at 00:05, "
        "and the global manager has not confirmed it yet."
    )


OUTSIDE = "/models/m.pkl lies neither below the job's outputDir /output/job1 nor in a place that LC_MODEL_PLACES names"


def given_up(rounds):
    """The round goes on until its model is given up, and the next one waits for samples."""
    rounds.evaluated().wait().then(failed("outside", OUTSIDE, final=True, now=rounds.time))
    return rounds.told("Deploy/Failed", "Train/Waiting")


def test_a_model_that_was_given_up_is_named_until_another_one_is_deployed(ask):
    rounds = given_up(Rounds().arrive(9))
    at = rounds.now - timedelta(minutes=1)

    answer = ask(rounds)
    assert answer.sentence == (
        "Round 2 has not fired: no train sample is pending, the newest samples came 14 min ago; "
        f"the model of round 1 could not be deployed at {at:%H:%M}: {OUTSIDE}."
    )
    assert {name: value for name, value in answer.facts.items() if name.startswith("failed_deploy")} == {
        "failed_deploy_round": 1,
        "failed_deploy_code": "outside",
        "failed_deploy_error": OUTSIDE,
        "failed_deploy_at": stamp(at),
    }

    rounds.arrive(9)
    told = f"the model of round 1 could not be deployed at {at:%H:%M}: {OUTSIDE}."
    assert ask(rounds).sentence.endswith(told)
    again = rounds.wait().then(failed("denied", "no right to write", now=rounds.time))
    assert ask(again).sentence.endswith(told), "what is tried again is not what was given up"
    later = ask(given_up(rounds))
    assert (later.facts["failed_deploy_round"], later.sentence.count("could not be deployed")) == (2, 1)
    assert "failed_deploy_round" not in ask(rounds.arrive(9).trained()).facts


def test_a_model_that_an_earlier_life_of_the_name_gave_up_is_not_named(ask):
    rounds = given_up(Rounds().arrive(9)).then(deleted())
    assert "failed_deploy_round" not in ask(rounds).facts
    assert "failed_deploy_round" not in ask(rounds.told(operation="insert")).facts


@pytest.mark.parametrize(
    "words",
    [
        "cannot read s3://models/m.pkl at minio: access is denied",
        "cannot write /output/job1/deploy/index.pkl: Permission denied",
    ],
)
def test_a_model_that_cannot_be_copied_is_not_deployed_yet(ask, words):
    rounds = Rounds().arrive(9).evaluated()
    assert ask(rounds).sentence.startswith("The model of round 1 is to be deployed, as was decided at ")
    assert ask(rounds).sentence.endswith("; it is being copied.")
    at = f"{rounds.wait().now:%H:%M}"
    rounds.then(failed("denied", words, now=rounds.time))

    sentence = ask(rounds).sentence
    assert sentence.startswith("The model of round 1 is to be deployed, as was decided at ")
    assert sentence.endswith(f", but it could not be copied since {at}: {words}; it is tried again within 60 s.")


def test_a_round_without_a_model_has_deployed_none(ask):
    rounds = Rounds().arrive(9)
    rounds.wait().then(written(rounds.time)).told("Eval/Completed", "Deploy/Waiting")

    assert ask(rounds).sentence.startswith("Round 1 has no model to deploy, as was decided at ")


def test_a_deleted_job(ask):
    rounds = two_rounds().then(deleted())
    answer = ask(rounds, later=timedelta(days=40))

    assert answer.sentence == "The job was deleted at 00:00 on 2024-01-01."
    assert answer.facts["waits_for"] == "nobody"


def test_an_earlier_moment_is_explained_from_what_was_recorded_until_then(ask):
    rounds = two_rounds()
    moment = rounds.now - timedelta(minutes=2)

    answer = ask(rounds, time=stamp(moment))

    assert answer.sentence == "Round 3 has not fired: no train sample is pending, the newest samples came 15 min ago."
    assert answer.facts["time"] == stamp(moment)


def test_a_moment_before_the_history_has_no_answer(ask):
    with pytest.raises(NotFoundError, match="had no event yet"):
        ask(two_rounds(), time="2023-01-01T00:00:00.000000Z")


def test_a_dataset_decides_nothing(tmp_path):
    stream = "default/dataset/ds"
    message = down(dataset_resource(), kind=DATASET, name="ds")
    events, _ = receive_dataset_message(DatasetState(stream), message, "2024-01-01T00:00:00.000000Z")
    path = stored(tmp_path / "events.db", events)
    archive = Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")

    with pytest.raises(UsageError, match="decides nothing"):
        why(archive, stream, now="2024-01-01T00:00:00.000000Z")


def test_a_round_that_ended_with_a_failed_worker_is_not_forgotten(ask):
    rounds = (
        Rounds().told("Train/Waiting").arrive(10).then(written(Rounds().time)).told("Train/Ready", "Train/Starting")
    )
    rounds = rounds.worker("train", "failed").told("Train/Failed", "Train/Waiting")

    answer = ask(rounds)

    assert "as its train worker failed; its samples are not trained again" in answer.sentence
    assert answer.facts["failed_kind"] == "train"


def test_what_a_failed_program_printed_is_named_by_its_file(ask):
    info = {"error": "the program exited with 2", "output": "secret", "output_file": "/w/runs/w1/output.log"}
    rounds = Rounds().arrive(10)
    rounds.then(written(rounds.time)).told("Train/Ready", "Train/Starting")
    rounds.then(reported("train", "failed", ownerInfo=info)).told("Train/Failed", "Train/Waiting")
    told = "the program exited with 2; its output is in /w/runs/w1/output.log"

    assert f"as its train worker failed: {told}; its samples" in ask(rounds).sentence
    history = rounds.history()
    [event] = history.of(e.WorkerResultReceived)
    assert narrate(event, history.state) == f"w1: train failed: {told}"
