from __future__ import annotations

import pytest
from support.given import arrive, confirmed, copied, deleted, given, gm, happened, repeated, reported, ticked, written
from support.sedna import condition, output

from lc_events.domain import events as e
from lc_events.messages.json import JsonObject

TRAIN_WAITING = condition("Train", "Waiting", "t1")
TRAIN_READY = condition("Train", "Ready", "t2", {"input": {"dataURL": "/output/job1/data/train/1/data.txt"}})
TRAIN_RUNNING = condition("Train", "Running", "t3")
TRAIN_COMPLETED = condition("Train", "Completed", "t4", output("/output/job1/train/1/index.pkl"))
EVAL_WAITING = condition("Eval", "Waiting", "t5")
EVAL_COMPLETED = condition("Eval", "Completed", "t6", output("/output/job1/eval/1/index.pkl"))
DEPLOY_WAITING = condition("Deploy", "Waiting", "t7")

AT_EVAL = (TRAIN_WAITING, TRAIN_READY, TRAIN_RUNNING, TRAIN_COMPLETED, EVAL_WAITING)
AT_DEPLOY = (*AT_EVAL, EVAL_COMPLETED, DEPLOY_WAITING)


def test_an_insert_begins_the_first_generation_and_is_judged_at_once():
    given().when(gm(TRAIN_WAITING, message_id="m-1")).then(
        happened(
            e.GlobalManagerMessageReceived,
            operation="insert",
            id="m-1",
            generation=1,
            conditions=[TRAIN_WAITING],
            conditions_count=1,
            reason="no_samples",
        )
    )


def test_only_what_is_new_is_stored():
    history = (
        given(gm(TRAIN_WAITING))
        .when(gm(TRAIN_WAITING, TRAIN_READY))
        .then(
            happened(
                e.GlobalManagerMessageReceived,
                generation=None,
                spec=None,
                metadata=None,
                kind=None,
                zone=None,
                conditions=[TRAIN_READY],
                conditions_count=2,
            )
        )
    )
    history.when(gm(TRAIN_WAITING, TRAIN_READY)).then(happened(e.GlobalManagerMessageReceived, conditions=()))


def test_a_message_without_news_is_stored_in_few_bytes():
    history = given(gm(TRAIN_WAITING)).when(gm(TRAIN_WAITING, message_id="m-2"))
    stored = e.Registry(e.JOB_EVENTS).stored(history.decided[0])
    assert set(stored) == {"time", "operation", "id", "conditions_count", "conditions_hash", "reason"}


def test_the_last_condition_is_stage_and_type():
    state = given(gm(*AT_EVAL)).state
    assert (state.stage, state.type) == ("Eval", "Waiting")


def test_a_list_that_became_empty_leaves_the_job_without_a_stage():
    state = given(gm(*AT_EVAL), gm()).state
    assert (state.stage, state.type, state.waiting) == (None, None, None)
    assert not state.is_waiting


def test_models_of_a_list_that_gm_wrote_anew_replace_the_old_ones():
    without_models = (TRAIN_WAITING, condition("Train", "Completed", "t4"), EVAL_WAITING)
    given(gm(TRAIN_COMPLETED, condition("Eval", "Running"))).when(gm(*without_models)).then(
        happened(e.GlobalManagerMessageReceived, reason="no_model", conditions=list(without_models))
    )


def test_of_a_trimmed_list_only_the_new_end_is_stored_and_older_models_still_count():
    later = condition("Eval", "Waiting", "t8")
    given(gm(TRAIN_COMPLETED, EVAL_WAITING), written()).when(gm(EVAL_WAITING, later)).then(
        happened(e.GlobalManagerMessageReceived, conditions=[later], reason="fired"),
        happened(e.EvaluationTriggered),
    )


def test_update_is_the_same_as_insert():
    inserted, updated = given(gm(TRAIN_WAITING)), given(gm(TRAIN_WAITING, operation="update"))
    assert inserted.state == updated.state
    assert updated.decided[0].operation == "update"


def test_a_delete_ends_the_generation_and_keeps_the_history():
    history = (
        given(gm(TRAIN_WAITING), arrive(5))
        .when(deleted("m-2"))
        .then(
            happened(e.GlobalManagerMessageReceived, operation="delete", id="m-2"),
            happened(e.JobDeleted, cause="deleted"),
        )
    )
    assert history.state.deleted
    assert not history.state.is_live
    assert history.state.intent is None
    assert history.state.gm_message == "m-2"


def test_a_second_delete_is_only_recorded():
    given(gm(TRAIN_WAITING), deleted()).when(deleted()).then(happened(e.GlobalManagerMessageReceived))


def test_an_insert_after_a_delete_begins_the_next_generation_from_round_1():
    state = given(gm(TRAIN_WAITING), arrive(10), written(), deleted(), gm(TRAIN_WAITING)).state
    assert (state.generation, state.deleted, state.round, state.seen) == (2, False, 0, 0)
    assert (state.place, state.train_pending, state.reports) == (None, (), ())
    assert state.gm_messages == 3
    assert state.is_waiting


def test_another_uid_is_another_generation():
    given(gm(TRAIN_WAITING, uid="u1"), arrive(2)).when(gm(TRAIN_WAITING, uid="u2")).then(
        happened(e.JobDeleted, cause="replaced"),
        happened(e.GlobalManagerMessageReceived, generation=2, conditions=[TRAIN_WAITING]),
    )


def test_a_uid_that_appears_or_goes_begins_no_generation():
    state = given(gm(TRAIN_WAITING), gm(TRAIN_WAITING, uid="u1"), gm(TRAIN_WAITING)).state
    assert state.generation == 1


def test_a_changed_spec_alone_makes_no_new_waiting_condition():
    history = given(gm(TRAIN_WAITING), arrive(10), written())
    history.when(gm(TRAIN_WAITING, train_prob=0.5, trigger=None), arrive(10)).then(
        happened(e.SamplesArrived, train=5, eval=5, reason=None)
    )


def test_a_changed_trigger_is_judged_at_once():
    given(gm(TRAIN_WAITING), arrive(4)).when(gm(TRAIN_WAITING, trigger=None)).then(
        happened(e.GlobalManagerMessageReceived, reason="fired", samples=3),
        happened(e.TrainingTriggered, round=1, samples=3),
    )


def test_a_waiting_condition_that_was_answered_keeps_its_report_and_starts_nothing():
    history = given(gm(TRAIN_WAITING), arrive(10), written(), arrive(10))
    report = history.state.reports[-1]
    again = history.when(gm(TRAIN_WAITING)).then(happened(e.GlobalManagerMessageReceived, reason=None))
    assert again.state.waiting is not None
    assert again.state.report_of(again.state.waiting) == report
    again.when(ticked()).then()


@pytest.mark.parametrize(
    "waiting",
    [condition("Train", "Waiting", "t9"), condition("Train", "Waiting")],
)
def test_a_waiting_condition_with_another_time_is_a_new_one(waiting: JsonObject):
    given(gm(TRAIN_WAITING), arrive(10), written(), arrive(10)).when(gm(waiting)).then(
        happened(e.GlobalManagerMessageReceived, reason="fired"), happened(e.TrainingTriggered, round=2, samples=8)
    )


def test_the_last_20_answered_conditions_are_remembered():
    history = given()
    waiting = [condition("Train", "Waiting", f"t{number}") for number in range(25)]
    for number in range(25):
        history = history.when(
            arrive(10) if number else gm(), gm(waiting[number]), *((arrive(10),) if not number else ())
        )
        history = history.when(written())
    assert [report.round for report in history.state.reports] == list(range(6, 26))
    state = history.when(gm(waiting[5])).state
    assert state.waiting is not None
    assert state.report_of(state.waiting) is not None


def test_a_new_condition_while_the_files_are_written_is_answered_by_them():
    state = given(gm(TRAIN_WAITING), arrive(10), gm(condition("Train", "Waiting", "t9")), written()).state
    assert state.round == 1
    assert state.waiting is not None
    assert state.report_of(state.waiting) is not None


def test_all_three_triggers_are_ready_again_at_a_new_train_waiting():
    history = given(gm(TRAIN_WAITING), arrive(10), written(), gm(*AT_EVAL), written(), gm(*AT_DEPLOY), copied())
    state = history.state
    assert (state.train_status, state.eval_status, state.deploy_status) == ("completed",) * 3
    state = history.when(gm(*AT_DEPLOY, condition("Train", "Waiting", "t8"))).state
    assert (state.train_status, state.eval_status, state.deploy_status) == ("ready",) * 3


def test_an_old_train_waiting_that_comes_again_leaves_the_triggers_as_they_are():
    state = given(gm(TRAIN_WAITING), arrive(10), written(), gm(*AT_EVAL), written(), gm(TRAIN_WAITING)).state
    assert (state.train_status, state.eval_status, state.deploy_status) == ("completed", "completed", "ready")


def test_a_report_is_confirmed_by_a_later_condition_of_its_stage():
    history = given(gm(TRAIN_WAITING), arrive(10), written())
    assert [u.stage for u in history.state.unconfirmed] == ["Train"]
    assert not history.when(gm(TRAIN_WAITING, TRAIN_READY)).state.unconfirmed


def test_a_report_is_not_confirmed_while_gm_still_stands_at_its_waiting_condition():
    before = condition("Deploy", "Completed", "t0")
    history = given(gm(before, TRAIN_WAITING), arrive(10), written())
    rewritten = condition("Deploy", "Completed", "t00")
    assert history.when(gm(rewritten, TRAIN_WAITING)).state.unconfirmed == history.state.unconfirmed


def test_a_list_written_anew_confirms_no_result_for_its_conditions_may_be_old():
    history = given(gm(TRAIN_WAITING, TRAIN_RUNNING), reported("train", "completed"))
    rewritten = condition("Deploy", "Completed", "t0")
    assert len(history.when(gm(rewritten, TRAIN_COMPLETED, EVAL_WAITING)).state.unconfirmed) == 1


def test_a_report_is_confirmed_by_its_version():
    history = given(gm(TRAIN_WAITING), arrive(10), written())
    (unconfirmed,) = history.state.unconfirmed
    history.when(confirmed(unconfirmed.version, 99)).then(happened(e.ReportsConfirmed, versions=[unconfirmed.version]))
    assert not history.when(confirmed(unconfirmed.version)).state.unconfirmed
    history.when(confirmed(99)).then()


def test_a_worker_result_is_unconfirmed_until_a_condition_went_as_far():
    history = given(gm(TRAIN_WAITING, TRAIN_READY)).when(reported("train", "running"), reported("train", "completed"))
    assert len(history.state.unconfirmed) == 2
    assert len(history.when(gm(TRAIN_WAITING, TRAIN_READY, TRAIN_RUNNING)).state.unconfirmed) == 1
    assert not history.when(gm(*AT_EVAL)).state.unconfirmed


def test_a_duplicate_is_counted_and_changes_nothing_else():
    history = given(gm(TRAIN_WAITING, message_id="m-1"), gm(TRAIN_WAITING, message_id="m-2"))
    after = history.when(repeated("m-1")).then(happened(e.DuplicateReceived, id="m-1")).state
    expected = history.state.copy()
    expected.version, expected.duplicates = expected.version + 1, 1
    assert after == expected
    assert after.gm_message == "m-2"


def test_a_worker_result_is_recorded_verbatim():
    given(gm(TRAIN_WAITING)).when(
        reported("banana", "sleeping", [{"n": 2**64 - 1}], id="r-1", ownerInfo={"rate": 0.5})
    ).then(
        happened(
            e.WorkerResultReceived,
            worker="w1",
            kind="banana",
            status="sleeping",
            id="r-1",
            results=[{"n": 2**64 - 1}],
            owner_info={"rate": 0.5},
            resource_kind="LifelongLearningJob",
        )
    )


def test_after_a_delete_no_report_is_repeated_but_worker_results_are():
    history = given(gm(TRAIN_WAITING), arrive(10), written(), reported(), deleted(), reported())
    assert [u.is_result for u in history.state.unconfirmed] == [True, True]


def test_results_of_the_life_before_are_still_to_be_confirmed_in_the_next():
    state = given(gm(TRAIN_WAITING), reported(), deleted(), gm(*AT_EVAL)).state
    assert [u.is_result for u in state.unconfirmed] == [True]
