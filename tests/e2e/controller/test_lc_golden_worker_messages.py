"""What of a worker's messages goes up, as recorded of Sedna's LC; where we differ, DESIGN section 5 says why."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.recordings import recording
from support.waiting import eventually

REFUSED = {
    "unknown job": "unknown_job",
    "unknown namespace": "unknown_job",
    "job whose init failed": "unknown_job",
    "unknown ownerKind": "kind",
    "CamelCase ownerKind": "kind",
    "dataset ownerKind": "kind",
    "name mismatch": "mismatch",
    "malformed JSON": "malformed",
    "malformed JSON after name": "malformed",
    "empty body": "malformed",
    "JSON array": "malformed",
    "trailing garbage": "malformed",
}
PASSED_ON_LATE = "after job delete"


@dataclass(frozen=True)
class Case:
    """What a worker sent, and what Sedna's LC passed on."""

    label: str
    worker: str
    body: str
    passed_on: dict | None


def cases() -> list[Case]:
    """The recorded requests that have an MQTT twin: a POST of JSON to a worker's address."""
    found: list[Case] = []
    for line in recording("worker_messages"):
        request = line.get("request", {})
        if line["dir"] == "lc->gm" and found:
            found[-1] = Case(found[-1].label, found[-1].worker, found[-1].body, line)
        elif request.get("method") == "POST" and request["content_type"] == "application/json":
            _, kind, *rest = request["path"].strip("/").split("/")
            if kind == "workers":
                found.append(Case(line["label"], rest[0], request["body"], None))
    return found


def test_the_recording_holds_the_cases_that_are_judged_here():
    labels = {case.label for case in cases()}
    assert labels >= REFUSED.keys() | {PASSED_ON_LATE}
    assert {case.label for case in cases() if case.passed_on} == labels - REFUSED.keys() - {PASSED_ON_LATE} | {
        "job whose init failed",
        "trailing garbage",
    }


@pytest.mark.parametrize("with_ids", [False, True])
def test_results_go_up_verbatim_or_are_refused_with_a_reason(lc, with_ids):
    gm = PlayedGm(lc, with_ids=with_ids)
    downs = [line for line in recording("worker_messages") if line["dir"] == "gm->lc"]
    lc.write("/data/d.txt", "a 0\nb 1\n")
    for line in downs[:3]:
        gm.send(line["header"]["resourceKind"], line["header"]["resourceName"], line["content"])
    gm.expect({"numberOfSamples": 2})
    answers = Answers(lc)
    assert answers.next_error()["code"] == "invalid"  # the outputDir of jobbad

    for number, case in enumerate(cases()):
        if case.label == PASSED_ON_LATE:
            gm.delete("job1")
        message_id = f"r-{number}" if with_ids and case.body.endswith("}") else None
        body = case.body if message_id is None else json.dumps({"id": message_id, **json.loads(case.body)})
        gm.report(case.worker, body)
        if code := REFUSED.get(case.label):
            error = answers.next_error()
            assert (error["code"], error["id"]) == (code, message_id), case.label
            assert error["topic"] == lc.topic(f"worker/{{node}}/{case.worker}/info")
            assert error["quarantine"], case.label
            if code != "unknown_job":
                assert answers.next_done(case.worker) == {"id": message_id, "error": code}, case.label
            continue
        heard = gm.next_up()
        expected = case.passed_on or cases()[0].passed_on
        assert expected is not None
        assert written(heard["content"]) == written(json.loads(expected["content"])), case.label
        assert heard["header"] == expected["header"]
        assert answers.next_done(case.worker) == {"id": message_id, "error": None}, case.label
    assert answers.is_all()
    assert lc.is_running


class Answers:
    """Errors and `done`s in the order in which they came."""

    def __init__(self, lc: ControllerProcess) -> None:
        self._lc = lc
        self._errors = 0
        self._done: dict[str, int] = {}

    def next_error(self) -> dict:
        self._errors += 1
        return eventually(lambda: self._lc.errors()[self._errors - 1 :])[0]

    def next_done(self, worker: str) -> dict:
        count = self._done[worker] = self._done.get(worker, 0) + 1
        return eventually(lambda: self._of(worker)[count - 1 :])[0]

    def is_all(self) -> bool:
        return len(self._lc.errors()) == self._errors and all(len(self._of(w)) == n for w, n in self._done.items())

    def _of(self, worker: str) -> list[dict]:
        return [m.json for m in self._lc.tap.of(self._lc.topic(f"worker/{{node}}/{worker}/done"))]


def written(content: object) -> str:
    """JSON text that tells 1.0 from 1."""
    return json.dumps(content, sort_keys=True)
