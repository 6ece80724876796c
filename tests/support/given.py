"""given(events) / when(command) / then(events) for the job: a history, a command, what was decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lc_events.domain import decisions as d
from lc_events.domain import events as e
from lc_events.domain import outcomes
from lc_events.domain.job import JobState
from lc_events.domain.job_fold import fold
from lc_events.messages.json import JsonObject
from lc_events.messages.worker import read_worker
from support.sedna import down, job_resource

STREAM = "default/lifelonglearningjob/job1"
NOW = "2024-01-01T00:00:00.000000Z"
REGISTRY = e.Registry(e.JOB_EVENTS)

Command = Callable[[JobState], tuple[list[e.Event], JobState]]


@dataclass(frozen=True)
class Happened:
    """An expected event: its class, and those of its fields that the test is about."""

    event_class: type[e.Event]
    fields: dict[str, object]

    def describes(self, event: e.Event) -> bool:
        return type(event) is self.event_class and all(getattr(event, n) == v for n, v in self.fields.items())


def happened(event_class: type[e.Event], **fields: object) -> Happened:
    return Happened(event_class, fields)


class History:
    """A job's events so far; `when` adds what a command decides, `then` looks at that decision alone."""

    def __init__(self, state: JobState, events: Sequence[e.Event] = (), decided: Sequence[e.Event] = ()) -> None:
        self.state = state
        self.events = list(events)
        self.decided = list(decided)

    def when(self, *commands: Command) -> History:
        """Carry out commands one after another; `decided` are the events of the last."""
        history = self
        for command in commands:
            decided, state = command(history.state)
            history = History(state, [*history.events, *decided], decided)
        return history

    def then(self, *expected: Happened) -> History:
        assert len(self.decided) == len(expected), self.decided
        for event, description in zip(self.decided, expected, strict=True):
            assert description.describes(event), (event, description)
        return self

    def of(self, event_class: type[e.Event]) -> list[Any]:
        """All events of a class."""
        return [event for event in self.events if type(event) is event_class]

    def replayed(self) -> JobState:
        """The fold of the events as they would be read back from disk."""
        return fold(STREAM, [through_json(event) for event in self.events])


def given(*commands: Command) -> History:
    """A job that never was, or one after some commands."""
    return History(JobState(STREAM)).when(*commands)


def through_json(event: e.Event) -> e.Event:
    """An event as it comes back from disk."""
    fields = orjson.loads(orjson.dumps(REGISTRY.stored(event)))
    return REGISTRY[type(event).__name__](
        originator_id=event.originator_id, originator_version=event.originator_version, **fields
    )


def facts(
    now: str = NOW,
    zone: str = "UTC",
    note: str | None = None,
    places: tuple[str, ...] = (),
    rules: int = e.RULES,
) -> d.Facts:
    return d.Facts(now, zone, note, places, rules)


def gm(
    *conditions: JsonObject,
    operation: str = "insert",
    message_id: str | None = None,
    at: d.Facts | None = None,
    **resource: Any,
) -> Command:
    """GM sends the job with these conditions."""
    message = down(job_resource(*conditions, **resource), operation=operation, message_id=message_id)
    return lambda state: d.receive_gm_message(state, message, at or facts())


def deleted(message_id: str | None = None) -> Command:
    return lambda state: d.receive_gm_message(state, down(None, operation="delete", message_id=message_id), facts())


def arrive(
    count: int,
    *,
    header: str | None = None,
    epoch: int = 1,
    dataset: str | None = None,
    url: str = "/data/ds.txt",
    at: d.Facts | None = None,
) -> Command:
    """`count` new records, which lie in their dataset's spool behind all that this history has counted of it."""

    def command(state: JobState) -> tuple[list[e.Event], JobState]:
        rows = state.place.rows if state.place is not None and state.place.epoch == epoch else 0
        span = (rows, rows + count)
        name = dataset or state.dataset_name or "ds"
        spooled = state.spool_ends.get(name, 0)
        batch = d.Samples(
            dataset=name,
            url=url,
            format="txt" if header is None else "csv",
            header=header,
            epoch=epoch,
            rows=span,
            bytes=(span[0] * 10, span[1] * 10),
            spooled=(spooled, spooled + count) if count else None,
        )
        return d.add_samples(state, batch, at or facts())

    return command


def ticked(cause: str = "period", as_of: str | None = None, at: d.Facts | None = None) -> Command:
    return lambda state: d.tick(state, at or facts(), cause=cause, as_of=as_of)


def written(now: str = NOW) -> Command:
    """The files of whatever intent there is are on disk."""

    def command(state: JobState) -> tuple[list[e.Event], JobState]:
        assert state.intent is not None
        event = state.intent.event
        assert not isinstance(event, e.DeployTriggered)
        file = {"url": event.input["dataURL"], "size": 1, "sha256": "0" * 64, "records": event.samples}
        return outcomes.record_files(state, state.intent.stage, state.intent.round, [file], now)

    return command


def copied(now: str = NOW) -> Command:
    """The model is where devices read it."""
    return lambda state: outcomes.record_model(
        state, state.round, url=f"{state.output_dir}/deploy/index.pkl", sha256="0" * 64, size=100, now=now
    )


def failed(
    code: str = "missing", error: str = "gone", *, attempt: int = 1, final: bool = False, now: str = NOW
) -> Command:
    def command(state: JobState) -> tuple[list[e.Event], JobState]:
        stage, round_ = ("Train", 0) if state.intent is None else (state.intent.stage, state.intent.round)
        return outcomes.record_failure(
            state, stage, round_, attempt=attempt, code=code, error=error, final=final, now=now
        )

    return command


def reported(kind: str = "train", status: str = "completed", results: object = (), **fields: object) -> Command:
    """A worker's message."""
    message = {"name": "w1", "ownerName": "job1", "ownerKind": "lifelonglearningjob", "kind": kind, "status": status}
    worker = read_worker(orjson.dumps({**message, "results": results, **fields}), worker="w1")
    return lambda state: d.receive_worker_result(state, worker, NOW)


def repeated(message_id: str | None = None, worker: str | None = None) -> Command:
    return lambda state: d.receive_duplicate(state, message_id, worker, NOW)


def confirmed(*versions: int) -> Command:
    return lambda state: d.confirm_reports(state, versions, NOW)
