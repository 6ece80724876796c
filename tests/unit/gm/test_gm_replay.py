from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.gm import (
    STREAM,
    Manager,
    controller_says,
    eval_input,
    job_manifest,
    model,
    template,
    train_input,
    worker_says,
)

from lc_events.application.journal import open_journal
from lc_events.gm.deliveries import holders
from lc_events.gm.events import GM_EVENTS
from lc_events.gm.ledger import Changes, Ledger

NODES = st.sampled_from(["edge1", "edge2"])
ROUNDS = st.integers(1, 3)


def _order_of(manager: Manager, named: bool) -> dict[str, Any] | None:
    order = manager.job.order or manager.job.serving
    return {"order": order.id} if named and order is not None else None


@st.composite
def commands(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Sequences that often, but not always, follow the stages."""
    command = st.one_of(
        st.tuples(st.just("apply"), st.tuples(st.sampled_from([None, "edge1", "edge2"]), st.booleans(), NODES)),
        st.tuples(st.just("link"), NODES),
        st.tuples(st.just("delete"), st.none()),
        st.tuples(st.just("confirm"), NODES),
        st.tuples(st.just("ready"), st.tuples(st.sampled_from(["Train", "Eval", "Deploy"]), ROUNDS, NODES)),
        st.tuples(
            st.just("worker"),
            st.tuples(
                st.sampled_from(["train", "eval", "inference"]),
                st.sampled_from(["running", "completed", "failed", "sleeping"]),
                st.booleans(),
                NODES,
            ),
        ),
        st.tuples(st.just("round"), ROUNDS),
    )
    return draw(st.lists(command, max_size=25))


def _carry_out(manager: Manager, command: str, given_: Any) -> None:
    match command:
        case "apply":
            node, with_program, worker_node = given_
            stage = template(worker_node) if with_program else {"template": {}}
            manager.apply(job_manifest(trainSpec=stage, deploySpec=stage), node=node)
        case "link":
            manager.link(given_)
        case "delete":
            manager.delete()
        case "confirm" if given_ in manager.job.deliveries:
            manager.confirm(given_)
        case "ready":
            stage, round_, node = given_
            inputs = {"Train": train_input(round_), "Eval": eval_input(round_), "Deploy": {"models": [model("eval")]}}
            manager.report(controller_says(stage, "Ready", inputs[stage]), node)
        case "worker":
            kind, status, named, node = given_
            manager.report(worker_says(kind, status, [model(kind)], _order_of(manager, named)), node)
        case "round":
            manager.train(given_, home=manager.job.home or "edge1", node=manager.job.home or "edge1")


def _check(manager: Manager) -> None:
    """What holds in every state."""
    job = manager.job
    times = [str(condition["lastTransitionTime"]) for condition in job.conditions]
    assert times == sorted(set(times))
    if not job.is_live:
        assert holders(job.deliveries) == []
        return
    if job.home is not None:
        assert job.home in holders(job.deliveries), "the dataset's node always has a live job"
    if job.type in ("Completed", "Failed"):
        raise AssertionError("a job never stands where nobody would move it")
    if job.order is not None:
        assert job.type in ("Starting", "Running")
        assert job.order.node in holders(job.deliveries), "a worker's node knows the job"
    needed = {job.home, *(job.worker_nodes.get(job.stage or ""),), job.serving and job.serving.node}
    if job.type == "Waiting" and job.stage == "Train":
        assert set(holders(job.deliveries)) <= needed


@given(commands())
@settings(max_examples=300)
def test_a_replay_gives_the_same_state_after_any_commands(given_: list[tuple[str, Any]]) -> None:
    manager = Manager()
    for command, arguments in given_:
        _carry_out(manager, command, arguments)
        _check(manager)


@given(commands())
@settings(max_examples=25)
def test_a_store_gives_the_same_state_back(given_: list[tuple[str, Any]]) -> None:
    manager = Manager()
    for command, arguments in given_:
        _carry_out(manager, command, arguments)
    with TemporaryDirectory() as folder:
        journal = open_journal(Path(folder) / "events.db", GM_EVENTS, write=True)
        ledger = Ledger(journal)
        changes = Changes(ledger)
        changes.keep((manager.events, manager.job))
        ledger.commit(changes)
        journal.close()
        again = open_journal(Path(folder) / "events.db", GM_EVENTS, write=True)
        assert (Ledger(again).get(STREAM) or manager.job) == manager.job
        assert len(again.rows.rows(stream=STREAM)) == len(manager.events)
        again.close()
