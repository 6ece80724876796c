from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hypothesis import HealthCheck, example, settings
from hypothesis import given as for_any
from hypothesis import strategies as st
from support.given import NOW, STREAM, confirmed, facts, repeated, reported, through_json, ticked
from support.sample_audit import audit_samples
from support.sedna import condition, down, job_resource, output

from lc_events.domain import decisions as d
from lc_events.domain import events as e
from lc_events.domain import outcomes
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import evolve, fold
from lc_events.domain.views import job_view

TRIGGERS: list[Any] = [
    None,
    {"condition": {"operator": "", "threshold": 0, "metric": ""}},
    {"condition": {"operator": ">", "threshold": 3, "metric": "num_of_samples"}},
    {"condition": {"operator": "<", "threshold": "9", "metric": "num_of_samples"}},
    {"condition": {"operator": ">=", "threshold": 0, "metric": "accuracy"}},
    {"timer": {"start": "22:00", "end": "05:00"}},
    {
        "timer": {"start": "02:10", "end": "24:00"},
        "condition": {"operator": "ge", "threshold": 1, "metric": "num_of_samples"},
    },
]
TIMES = [
    NOW,
    "2024-03-31T01:10:00.000000Z",
    "2024-10-27T00:20:00.000000Z",
    "1970-01-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z",
    "2024-06-01T23:30:00.000000Z",
]


class Device:
    """A job and the GM that it hears: GM's list, its spec, and all that was decided so far."""

    def __init__(self) -> None:
        self.state = JobState(STREAM)
        self.events: list[e.Event] = []
        self.conditions: list[Any] = []
        self.resource: dict[str, Any] = {}
        self.spooled: dict[str, int] = {}
        self.rows: dict[tuple[str, int], int] = {}
        self.epoch = 1
        self.header: str | None = None
        self.now = NOW
        self.places: tuple[str, ...] = ()
        self.clock = 0

    def carry_out(self, command: Callable[[JobState], tuple[list[e.Event], JobState]]) -> list[e.Event]:
        before = JobState(STREAM) if self.state.version == 0 else self.state.copy()
        decided, after = command(self.state)
        assert self.state == before, "a decision changed the state that it was given"
        versions = [event.originator_version for event in decided]
        assert versions == list(range(self.state.version + 1, self.state.version + 1 + len(decided)))
        assert after.version == self.state.version + len(decided)
        self.state = after
        self.events += decided
        return decided

    @property
    def facts(self) -> d.Facts:
        return facts(self.now, "Europe/Berlin", places=self.places)

    def send(self, operation: str = "insert", conditions: list[Any] | None = None) -> None:
        content = job_resource(*(self.conditions if conditions is None else conditions), **self.resource)
        message = down(content, operation=operation, message_id=f"m-{len(self.events)}")
        self.carry_out(lambda state: d.receive_gm_message(state, message, self.facts))

    def begin(self, conditions: list[Any]) -> None:
        """The job as it comes here: new, or begun by another controller."""
        self.conditions = [*conditions]
        self.send()

    def append(self, stage: str, type_: str, data: Any, timed: bool) -> None:
        """GM adds a condition; one that is not timed has the time of the one before."""
        self._append(stage, type_, data, timed=timed)
        self.send()

    def _append(self, stage: str, type_: str, data: Any, *, timed: bool = True) -> None:
        self.clock += timed
        self.conditions = [*self.conditions, condition(stage, type_, f"t{self.clock}", data)]

    def send_first(self, count: int) -> None:
        """An older message arrives late."""
        self.send(conditions=self.conditions[:count])

    def keep_last(self, count: int) -> None:
        """GM trims its list, or loses it."""
        self.conditions = self.conditions[-count:] if count else []
        self.send()

    def change(self, field: str, value: Any) -> None:
        self.resource[field] = value
        self.send()

    def see(self, header: str | None, epoch: int) -> None:
        """Another file, or another header, from now on."""
        self.header, self.epoch = header, epoch

    def set_clock(self, now: str) -> None:
        self.now = now

    def open_places(self, places: tuple[str, ...]) -> None:
        """The node starts again with another setting."""
        self.places = places

    def tick(self, cause: str, as_of: str | None) -> None:
        self.carry_out(ticked(cause, as_of, self.facts))

    def report(self, kind: str, status: str) -> None:
        self.carry_out(reported(kind, status))

    def repeat(self, message_id: str | None, worker: str | None) -> None:
        self.carry_out(repeated(message_id, worker))

    def confirm(self, count: int, others: list[int]) -> None:
        self.carry_out(confirmed(*(u.version for u in list(self.state.unconfirmed)[:count]), *others))

    def fail(self, code: str, final: bool) -> None:
        intent, now = self.state.intent, self.now
        stage, round_ = ("Train", 1) if intent is None else (intent.stage, intent.round)
        self.carry_out(
            lambda s: outcomes.record_failure(s, stage, round_, attempt=1, code=code, error=code, final=final, now=now)
        )

    def answer(self, stage: str, round_: int, version: int | None) -> None:
        """An answer that may belong to no intent."""
        now = self.now
        self.carry_out(lambda s: outcomes.record_files(s, stage, round_, [], now, intent=version))
        self.carry_out(
            lambda s: outcomes.record_model(s, round_, url="/d", sha256="0", size=1, now=now, intent=version)
        )

    def go_on(self, batches: list[int]) -> None:
        """Ordinary life: GM goes on, what was decided gets done, samples arrive."""
        for batch in batches:
            self.advance()
            self.fulfil()
            self.arrive(batch)
            self.fulfil()

    def advance(self) -> None:
        """What Sedna's GM does next, told in one message."""
        last = self.conditions[-1] if self.conditions else None
        round_ = self.state.round
        match (last and last["stage"], last and last["type"]):
            case (stage, "Waiting") if self.state.waiting and self.state.report_of(self.state.waiting):
                data = {"input": {"dataURL": self.state.train_data_url}} if stage == "Train" else None
                self._append(stage, "Ready", data)
            case ("Train", "Ready"):
                self._append("Train", "Completed", output(f"/output/job1/train/{round_}/m.pkl"))
                self._append("Eval", "Waiting", None)
            case ("Eval", "Ready"):
                self._append("Eval", "Completed", output(f"/output/job1/eval/{round_}/m.pkl"))
                self._append("Deploy", "Waiting", None)
            case (_, "Waiting"):
                pass
            case _:
                self._append("Train", "Waiting", None)
        self.send()

    def arrive(self, count: int) -> None:
        """New records, as the follower of the dataset hands them over: each once, from the job's place on."""
        dataset = self.state.dataset_name or "ds"
        place, key = self.state.place, (dataset, self.epoch)
        first = place.rows if place is not None and place.epoch == self.epoch else 0
        self.rows[key] = max(self.rows.get(key, 0), first) + count
        begin = self.spooled.get(dataset, 0)
        new = self.rows[key] - first
        self.spooled[dataset] = begin + new
        batch = d.Samples(
            dataset,
            f"/data/{dataset}",
            "txt" if self.header is None else "csv",
            self.header,
            self.epoch,
            (first, first + new),
            (first * 10, (first + new) * 10),
            (begin, begin + new) if new else None,
        )
        self.carry_out(lambda state: d.add_samples(state, batch, self.facts))

    def fulfil(self) -> None:
        """The effect of the intent has succeeded."""
        intent = self.state.intent
        if intent is None:
            return
        version = intent.version
        if isinstance(intent.event, e.DeployTriggered):
            self.carry_out(
                lambda s: outcomes.record_model(
                    s, intent.round, url="/d", sha256="0", size=1, now=self.now, intent=version
                )
            )
        else:
            self.carry_out(lambda s: outcomes.record_files(s, intent.stage, intent.round, [], self.now, intent=version))


stages = st.sampled_from(["Train", "Eval", "Deploy", "Other"])
types = st.sampled_from(["Waiting", "Ready", "Starting", "Running", "Completed", "Failed"])
data = st.sampled_from(
    [
        None,
        "no json",
        output("/output/job1/train/1/m.pkl"),
        output("/etc/shadow"),
        output("/models/m.pkl"),
        {"input": {"dataURL": "/output/job1/data/train/4/data.csv"}},
        {"output": {"models": [{"url": "/output/job1/x", "n": 2**64 - 1}]}},
    ]
)
ADOPTABLE = condition("Train", "Ready", "t0", {"input": {"dataURL": "/output/job1/data/train/4/data.txt"}})
TRAINED = condition("Train", "Completed", "t0", output("/output/job1/train/4/m.pkl"))
BEGINNINGS: list[list[Any]] = [
    [],
    [condition("Train", "Waiting")],
    [ADOPTABLE],
    [ADOPTABLE, TRAINED, condition("Eval", "Waiting")],
    [ADOPTABLE, condition("Eval", "Waiting")],
    [ADOPTABLE, TRAINED, condition("Deploy", "Waiting")],
    [ADOPTABLE, TRAINED, condition("Train", "Waiting", "t0")],
]

Step = tuple[Any, ...]
"""A method of `Device` and its arguments."""


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), *arguments)


life = step("go_on", st.lists(st.integers(0, 12), max_size=6))
single = st.one_of(step("advance"), step("fulfil"), step("arrive", st.integers(0, 12)))
disturbance = st.one_of(
    step("append", stages, types, data, st.booleans()),
    step("send", st.sampled_from(["insert", "update", "delete"])),
    step("send_first", st.integers(0, 8)),
    step("keep_last", st.integers(0, 4)),
    step("change", st.just("train_prob"), st.sampled_from([0, 0.29, 0.5, 0.8, 1])),
    step("change", st.just("trigger"), st.sampled_from(TRIGGERS)),
    step("change", st.just("dataset"), st.sampled_from(["ds", "other"])),
    step("change", st.just("uid"), st.sampled_from(["u1", "u2"])),
    step("change", st.just("output_dir"), st.sampled_from(["/output/job1", "/output/job1/", "s3://b/job1"])),
    step("see", st.sampled_from([None, "a,b", "a,b,c"]), st.integers(1, 3)),
    step("set_clock", st.sampled_from(TIMES)),
    step("open_places", st.sampled_from([(), ("/models",), ("/models", "s3://models")])),
    step("tick", st.sampled_from(["period", "external", "window", "restart"]), st.sampled_from([None, *TIMES])),
    step("report", st.sampled_from(["train", "eval", "inference", "x"]), st.sampled_from(["running", "completed"])),
    step("repeat", st.sampled_from([None, "m-0"]), st.sampled_from([None, "w"])),
    step("confirm", st.integers(0, 3), st.lists(st.integers(0, 50), max_size=2)),
    step("fail", st.sampled_from(["missing", "denied"]), st.booleans()),
    step("answer", stages, st.integers(0, 4), st.none() | st.integers(0, 40)),
)
sequences = st.builds(
    lambda beginning, parts: [("begin", beginning), *(taken for part in parts for taken in part)],
    st.sampled_from(BEGINNINGS),
    st.lists(st.tuples(life, disturbance, single, disturbance), min_size=1, max_size=10),
)
relentless = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def lived(steps: list[Step]) -> Device:
    device = Device()
    for name, *arguments in steps:
        getattr(device, name)(*arguments)
    return device


def assert_same(one: JobState, other: JobState) -> None:
    for field in fields(JobState):
        assert getattr(one, field.name) == getattr(other, field.name), field.name


@relentless
@for_any(sequences)
def test_whatever_happens_the_fold_of_the_stored_events_is_the_live_state(steps: list[Step]):
    device = lived(steps)
    assert_same(fold(STREAM, device.events), device.state)
    read = [through_json(event) for event in device.events]
    replayed = fold(STREAM, read)
    assert_same(replayed, device.state)
    assert job_view(replayed, "edge1") == job_view(device.state, "edge1")
    one_by_one = JobState(STREAM)
    for event in read:
        one_by_one = evolve(one_by_one, event)
    assert_same(one_by_one, device.state)


@relentless
@for_any(sequences)
def test_whatever_happens_each_sample_is_trained_once_or_evaluated_in_its_five_rounds(
    steps: list[Step],
):
    device = lived(steps)
    audit_samples(device.events)
    state = device.state
    pending = sum(r.size for r in state.train_pending)
    trained = sum(t.samples for t in this_life(device.events) if isinstance(t, e.TrainingTriggered))
    assert pending + trained == state.train_total
    assert state.train_total + state.eval_total == state.seen
    assert pending == state.train_pending_count


def this_life(events: list[e.Event]) -> list[e.Event]:
    begins = [n for n, x in enumerate(events) if isinstance(x, e.GlobalManagerMessageReceived) and x.generation]
    return events[begins[-1] :] if begins else []


REPORTS = (e.TrainDataWritten, e.EvalDataWritten, e.ModelDeployed)


@relentless
@for_any(sequences)
def test_whatever_happens_a_waiting_condition_is_answered_once(steps: list[Step]):
    device = lived(steps)
    answered: list[tuple[Any, ...]] = []
    state = JobState(STREAM)
    for event in device.events:
        before, state = state, evolve(state, event)
        if isinstance(event, e.GlobalManagerMessageReceived) and event.generation is not None:
            answered.clear()
        if state.reports and (not before.reports or state.reports[-1] != before.reports[-1]):
            assert state.reports[-1].key not in answered[-20:]
            answered.append(state.reports[-1].key)
            assert isinstance(event, (*REPORTS, e.DeployTriggered, e.TriggerFailed))
        if isinstance(event, (e.TrainingTriggered, e.EvaluationTriggered, e.DeployTriggered)):
            assert tuple(event.waiting) == before.waiting
        if isinstance(event, e.TrainingTriggered):
            assert event.round == before.round + 1


@relentless
@for_any(sequences)
def test_whatever_happens_a_running_job_is_not_ticked(steps: list[Step]):
    device = lived(steps)
    state = JobState(STREAM)
    for event in device.events:
        assert not isinstance(event, e.Ticked) or state.is_waiting
        state = evolve(state, event)


@settings(max_examples=30)
@example([0.5, 0.8, 1], [3] * 40)
@for_any(
    st.lists(st.sampled_from([0.29, 0.5, 0.8, 1]), min_size=1, max_size=3), st.lists(st.integers(0, 9), max_size=60)
)
def test_a_long_ordinary_life_keeps_the_promise(shares: list[float], batches: list[int]):
    device = Device()
    device.resource["trigger"] = TRIGGERS[2]
    for number, batch in enumerate(batches):
        device.resource["train_prob"] = shares[number * len(shares) // len(batches)]
        device.advance()
        device.fulfil()
        device.arrive(batch)
        device.fulfil()
    assert audit_samples(device.events) == sum(batches)
