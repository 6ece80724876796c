from __future__ import annotations

import random

import pytest
from support.gm import controller_says, eval_input, job_manifest, model, template, train_input, worker_says
from support.tap import Tap
from support.waiting import eventually

from lc_events.application.journal import open_journal
from lc_events.gm.events import GM_EVENTS
from lc_events.gm.ledger import Ledger


def test_what_was_not_shown_before_a_kill_is_said_again_under_the_same_id(cloud, edge1, dataset) -> None:
    cloud.start_process()
    cloud.apply(dataset)
    cloud.apply(job_manifest(trainSpec=template()))
    edge1.report(controller_says("Train", "Ready", train_input()))
    starting, order = edge1.told("Train/Starting"), edge1.order("Train")
    cloud.kill()
    cloud.start_process()
    assert edge1.told("Train/Starting", count=2).json == starting.json
    assert edge1.order("Train", count=2).json == order.json


def test_what_was_shown_before_a_kill_is_not_said_again(cloud, edge1, dataset) -> None:
    cloud.start_process()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    edge1.shows(edge1.told("Train/Waiting"))
    eventually(lambda: not cloud.show()["unconfirmed"])
    cloud.kill()
    cloud.start_process()
    again = cloud.topics.down("edge1", "dataset", "default", "ds")
    cloud.tap.wait_for_count(2, lambda m: m.topic == again, 15)
    edge1.report(worker_says("sleep", "sleeping"))
    assert len(edge1.messages()) == 1


def test_a_report_sent_while_the_global_manager_is_away_is_taken_in_later(cloud, edge1, dataset) -> None:
    cloud.start_process()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    edge1.told("Train/Waiting")
    cloud.kill()
    report = edge1.report(controller_says("Train", "Ready", train_input()), wait=False)
    cloud.start_process()
    edge1.confirmed(report)
    edge1.told("Train/Starting")


def test_a_delete_that_was_not_shown_before_a_kill_goes_on(cloud, edge1, dataset) -> None:
    cloud.start_process()
    cloud.apply(dataset)
    cloud.apply(job_manifest(trainSpec=template()))
    edge1.report(controller_says("Train", "Ready", train_input()))
    order = edge1.order("Train")
    cloud.delete()
    edge1.deleted()
    cloud.kill()
    cloud.start_process()
    edge1.deleted(count=2)
    edge1.cancelled(order)
    edge1.shows(None)
    eventually(lambda: [entry["what"] for entry in cloud.show()["unconfirmed"]] == ["cancel"])


def test_a_broker_that_forgot_everything_is_told_everything_again(cloud, edge1, dataset, mosquitto) -> None:
    cloud.broker = mosquitto
    cloud.tap.stop()
    cloud.tap = Tap(mosquitto.port, f"{cloud.root}/#").start()
    cloud.start(first=300.0)
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    first = edge1.told("Train/Waiting")
    mosquitto.kill()
    for path in mosquitto.folder.glob("mosquitto.db*"):
        path.unlink()
    cloud.tap.stop()
    mosquitto.start()
    cloud.tap = Tap(mosquitto.port, f"{cloud.root}/#").start()
    edge1.born()
    assert edge1.told("Train/Waiting").json == first.json


def test_sigterm_ends_it_with_zero(cloud, edge1, dataset) -> None:
    cloud.start_process()
    cloud.apply(dataset)
    assert cloud.terminate() == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kills_at_random_moments_lose_nothing_and_do_nothing_twice(cloud, edge1, dataset, seed) -> None:
    chance = random.Random(seed)
    cloud.start_process()
    cloud.apply(dataset)
    cloud.apply(job_manifest(trainSpec=template(), evalSpec=template(), deploySpec=template()))

    def said(content: dict[str, object]) -> None:
        """Report, kill at some moment, start again, repeat until confirmed; as LCs do."""
        report = edge1.report(content, wait=False)
        if chance.random() < 0.6:
            moment = chance.choice([0, 1, 2])
            count = len(cloud.tap.messages)
            eventually(lambda: len(cloud.tap.messages) >= count + moment or moment)
            cloud.kill()
            edge1.report(content, report, wait=False)
            cloud.start_process()
        edge1.confirmed(report)

    def ordered(stage: str) -> dict[str, object]:
        """What the agent knows once the stage's order has reached it."""
        order = next(work["id"] for work in cloud.show()["work"] if work["stage"] == stage and not work["answered"])
        cloud.tap.wait_for(lambda m: m in edge1.orders() and m.json["id"] == order, 15)
        return {"order": order, "round": round_}

    for round_ in (1, 2):
        said(controller_says("Train", "Ready", train_input(round_)))
        owner = ordered("Train")
        said(worker_says("train", "running", owner_info=owner))
        said(worker_says("train", "completed", [model("train", round_)], owner))
        said(controller_says("Eval", "Ready", eval_input(round_)))
        said(worker_says("eval", "completed", [model("eval", round_)], ordered("Eval")))
        said(controller_says("Deploy", "Ready", {"models": [model("eval", round_)]}))
        said(worker_says("deploy", "running", owner_info=ordered("Deploy")))

    shown = cloud.show()
    round_moves = [
        *("Train/Waiting", "Train/Ready", "Train/Starting", "Train/Running", "Train/Completed"),
        *("Eval/Waiting", "Eval/Ready", "Eval/Starting", "Eval/Completed"),
        *("Deploy/Waiting", "Deploy/Ready", "Deploy/Starting", "Deploy/Running", "Deploy/Completed"),
    ]
    assert [f"{c['stage']}/{c['type']}" for c in shown["conditions"]] == [*round_moves, *round_moves, "Train/Waiting"]
    assert shown["counts"]["reports"] == 14
    ids = {order.json["id"] for order in edge1.orders() if "stage" in order.json}
    assert len(ids) == 6, "each stage of each round was ordered once, however often that was said"
    messages = {m.json["id"]: m.json["content"] for m in edge1.messages()}
    assert all(m.json["content"] == messages[m.json["id"]] for m in edge1.messages()), "a repeat says the same"
    cloud.kill()
    journal = open_journal(cloud.folder / "events.db", GM_EVENTS, write=True)
    assert {state.stream for state in Ledger(journal).states()} == {
        "default/dataset/ds",
        "default/lifelonglearningjob/job1",
    }
    journal.close()


def test_a_stream_that_cannot_be_read_leaves_the_others_alone(cloud, edge1, dataset) -> None:
    cloud.start_process()
    cloud.apply(dataset)
    cloud.apply(job_manifest())
    cloud.apply(job_manifest(metadata={"name": "job2"}, outputDir="/output/job2"))
    cloud.kill()
    journal = open_journal(cloud.folder / "events.db", GM_EVENTS, write=True)
    with journal.rows.datastore.transaction(commit=True) as cursor:
        cursor.execute(
            "UPDATE stored_events SET topic = 'Unheard' WHERE originator_id = ? AND originator_version = 2",
            ("default/lifelonglearningjob/job2",),
        )
    journal.close()
    cloud.start_process()
    edge1.report(controller_says("Train", "Ready", train_input()))
    assert cloud.show()["type"] == "Starting"
    assert "default/lifelonglearningjob/job2 is left alone" in cloud.log
