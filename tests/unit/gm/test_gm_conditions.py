from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.gm import Manager, controller_says, train_input, worker_says

from lc_events.gm.conditions import KEPT, bounded_models, condition, kept, models, strictly_after
from lc_events.messages.json import JsonObject

OUTPUT: JsonObject = {"output": {"models": [{"format": "pkl", "url": "/m", "classes": None}]}}


def entry(number: int, stage: str, type_: str, *, with_output: bool = False) -> JsonObject:
    at = f"2026-05-09T08:00:00.{number:06}Z"
    return condition(stage, type_, at, OUTPUT if with_output else None)


@given(st.lists(st.tuples(st.sampled_from(["Train", "Eval", "Deploy"]), st.booleans(), st.booleans()), max_size=150))
def test_dropping_as_we_go_keeps_the_same_as_dropping_at_the_end(moves: list[tuple[str, bool, bool]]) -> None:
    whole: list[JsonObject] = []
    as_we_go: tuple[JsonObject, ...] = ()
    for number, (stage, completed, with_output) in enumerate(moves):
        new = entry(number, stage, "Completed" if completed else "Waiting", with_output=with_output)
        whole.append(new)
        as_we_go = kept((*as_we_go, new))
    assert as_we_go == kept(whole)
    assert len(as_we_go) <= KEPT + 2
    assert as_we_go[-KEPT:] == tuple(whole[-KEPT:])
    for stage in ("Train", "Eval"):
        assert models(as_we_go, stage) == models(whole, stage)


@given(st.datetimes(), st.datetimes())
def test_a_transition_time_is_later_than_the_one_before(last: object, now: object) -> None:
    before, clock = (f"{moment.isoformat(timespec='microseconds')}Z" for moment in (last, now))  # type: ignore[attr-defined]
    if before.startswith("9999-12-31T23:59:59"):
        return
    assert strictly_after(before, clock) > before


def test_the_models_of_many_failed_rounds_ago_are_still_sent(manager: Manager) -> None:
    manager.apply()
    manager.train()
    manager.evaluate()
    manager.deploy()
    for round_ in range(2, 40):
        manager.report(controller_says("Train", "Ready", train_input(round_)))
        manager.report(worker_says("train", "failed"))
    conditions = manager.job.conditions
    assert len(conditions) == KEPT + 2
    assert [(c["stage"], c["type"]) for c in conditions[:2]] == [("Train", "Completed"), ("Eval", "Completed")]
    assert models(conditions, "Eval")[0]["url"] == "/output/job1/eval/1/index.pkl"
    assert manager.job.trained


def test_metrics_that_are_too_large_are_left_out_and_too_many_models_are_none() -> None:
    large = {"format": "pkl", "url": "/m", "metrics": {"loss": [0.5] * 30_000}}
    assert bounded_models([large]) == [{"format": "pkl", "url": "/m", "classes": None}]
    assert bounded_models([{"url": "/m" * 50}] * 5000) is None
    assert bounded_models([None, 3, {"format": "pkl"}]) == []
    assert bounded_models(None) == []
