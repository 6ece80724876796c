"""Seven rounds, message by message, as the real Sedna LC was recorded in three of them."""

from __future__ import annotations

import copy

import pytest
from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm
from support.recordings import Expected, Step, carried_on, rounds
from support.waiting import eventually

NAMES = ("happy_txt", "happy_csv")
FORMS = {
    "ids": {"with_ids": True},
    "no-ids": {"with_ids": False},
    "base64": {"with_ids": False, "as_base64": True},
}


class Replay:
    """Plays GM, worker and dataset of a recording, and compares what comes up and what is written."""

    def __init__(self, lc: ControllerProcess, gm: PlayedGm, name: str) -> None:
        self._lc = lc
        self._gm = gm
        self._expected = Expected(name)
        self._conditions: list[dict] = []

    def play(self, round_: list[Step], *, is_recorded: bool) -> None:
        for step in round_:
            match step.kind:
                case "append":
                    self._append(step)
                case "down":
                    self._down(step)
                case "worker":
                    self._worker(step)
                case "up":
                    (heard,) = self._gm.expect(step.content)
                    assert heard["header"]["resourceKind"] == step.name
                    assert (heard["header"]["namespace"], heard["header"]["operation"]) == ("default", "status")
                case "files":
                    self._files(step, is_recorded=is_recorded)

    def _append(self, step: Step) -> None:
        ((path, text),) = step.content.items()
        if path.endswith(" (+)"):
            self._lc.append(path.removesuffix(" (+)"), text)
        else:
            self._lc.write(path, text)
        self._expected.appended(text)

    def _down(self, step: Step) -> None:
        content = copy.deepcopy(step.content)
        if step.name == "lifelonglearningjob":
            self._conditions += content["status"]["conditions"]
            content["status"]["conditions"] = self._conditions
        self._gm.send(step.name, content["metadata"]["name"], content)

    def _worker(self, step: Step) -> None:
        if step.content["kind"] == "eval":
            url = step.content["results"][0]["url"]
            text = model_of(int(url.split("/")[4]))
            self._lc.write(url, text)
            self._expected.model(text)
        self._gm.report(step.name, step.content)

    def _files(self, step: Step, *, is_recorded: bool) -> None:
        if step.name.startswith("after eval ready"):
            self._expected.eval_ready()
        if step.name.startswith("after deploy ready"):
            self._expected.deployed()
        if is_recorded:
            assert self._expected.files == self._expected.as_recorded(step.content)
        assert self._lc.tree("/output/job1") == self._expected.files


def model_of(round_: int) -> str:
    """What the recorded eval workers wrote: a large model first, then small ones."""
    return "MODEL" * 20 if round_ == 1 else f"m{round_}"


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_round_is_the_one_before_carried_on(name):
    _, second, third = rounds(name, 3)
    assert [s for s in carried_on(second, 2, 3) if s.kind != "files"] == [s for s in third if s.kind != "files"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_seven_rounds_send_and_write_what_sedna_does(lc, name, form):
    replay = Replay(lc, PlayedGm(lc, **FORMS[form]), name)
    for number, round_ in enumerate(rounds(name, 7), start=1):
        replay.play(round_, is_recorded=number <= 3)
    assert_seven_rounds_passed(lc)
    assert lc.job()["counts"]["duplicates"] == 0


def test_seven_rounds_are_the_same_when_the_broker_restarts_within(mosquitto, topic_root, tmp_path):
    with ControllerProcess(tmp_path, port=mosquitto.port, topic_root=topic_root) as lc:
        gm = PlayedGm(lc)
        replay = Replay(lc, gm, "happy_txt")
        for number, (first, *rest) in enumerate(rounds("happy_txt", 7), start=1):
            births = len(lc.births())
            if number == 3:
                mosquitto.stop()
            replay.play([first], is_recorded=True)
            if number == 5:
                mosquitto.stop()
            if number in (3, 5):
                mosquitto.start()
                eventually(lambda births=births: len(lc.births()) > births)
            replay.play(rest, is_recorded=number <= 3)
        assert_seven_rounds_passed(lc)
        assert len({m.json["session"] for m in lc.births()}) == 3


def assert_seven_rounds_passed(lc):
    def passed():
        state = lc.job()
        return state["stage"] == "Train" and state["model"] and state["model"]["round"] == 7 and state

    state = eventually(passed)
    assert (state["round"], state["generation"]) == (7, 1)
    assert state["samples"] == {
        "seen": 70,
        "train_pending": 0,
        "eval_pending": 8,
        "eval_versions": 4,
        "train_total": 56,
        "eval_total": 14,
    }
    assert lc.errors() == []
