from __future__ import annotations

import json
from typing import Any

import pytest
from support.gm import Manager, worker_says
from support.recordings import rounds, steps

from lc_events.gm.conditions import condition
from lc_events.gm.events import ConditionAppended


def _said(found: dict[str, Any]) -> tuple[Any, ...]:
    """A condition without its times, its data parsed."""
    data = found.get("data")
    return (found["type"], found["status"], found["stage"], None if data is None else json.loads(data))


@pytest.mark.parametrize("name", ["happy_txt", "happy_csv"])
def test_the_conditions_are_those_of_the_recorded_global_manager(name: str) -> None:
    manager = Manager()
    jobs = [step.content for step in steps(name) if (step.kind, step.name) == ("down", "lifelonglearningjob")]
    recorded = [_said(found) for job in jobs for found in job["status"]["conditions"]]
    manager.apply(jobs[0])
    for each_round in rounds(name, 3):
        for step in each_round:
            if step.kind == "up" and "phase" in step.content:
                if step.content["output"] is not None:
                    manager.report(worker_says(step.content["phase"], "running"))
                manager.report(step.content)
    appended = [event for event in manager.events if isinstance(event, ConditionAppended)]
    written = [condition(event.stage, event.type, event.at or event.time, event.data) for event in appended]
    assert [_said(dict(found)) for found in written] == recorded


@pytest.mark.parametrize("name", ["happy_txt", "happy_csv"])
def test_the_resource_is_the_recorded_one_but_for_uid_and_times(name: str) -> None:
    manager = Manager()
    job = next(step.content for step in steps(name) if (step.kind, step.name) == ("down", "lifelonglearningjob"))
    manager.apply(job)
    sent = json.loads(json.dumps(manager.job.deliveries["edge1"].body))
    assert sent["spec"] == job["spec"]
    assert (sent["kind"], sent["apiVersion"]) == (job["kind"], job["apiVersion"])
    assert {name: sent["metadata"][name] for name in ("name", "namespace")} == job["metadata"]
    assert sent["status"]["conditions"][0].keys() == job["status"]["conditions"][0].keys()
