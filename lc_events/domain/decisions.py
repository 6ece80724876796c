"""What a job decides: `decide(state, command, facts) -> events`. Every fact that counts is handed in and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from lc_events.domain import events as e
from lc_events.domain.conditions import digest, new_conditions, round_of
from lc_events.domain.eval_file import eval_file, eval_pending_count, one_source
from lc_events.domain.job import JobState, Source
from lc_events.domain.job_fold import evolve
from lc_events.domain.split import train_share
from lc_events.domain.steps import Steps
from lc_events.messages.gm import DownMessage
from lc_events.messages.json import JsonObject
from lc_events.messages.model_places import lies_in
from lc_events.messages.resources import below, is_s3
from lc_events.messages.worker import WorkerMessage

__all__ = [
    "Facts",
    "Samples",
    "add_samples",
    "confirm_reports",
    "is_trusted_model",
    "receive_duplicate",
    "receive_gm_message",
    "receive_worker_result",
    "tick",
]

_URL_CHARACTERS = 4096

_Decision = tuple[list[e.Event], JobState]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a decision needs to know from outside: receipt time, zone of the windows, what is wrong with the dataset.

    `model_places` are URLs below which models count besides the job's outputDir, as this node's owner set them.
    Samples are judged by the zone and places that the message or tick before told of. `rules` are those to decide by:
    the newest, but where a recorded decision is derived again.
    """

    now: str
    zone: str = "UTC"
    dataset_note: str | None = None
    model_places: tuple[str, ...] = ()
    rules: int = e.RULES


@dataclass(frozen=True, slots=True)
class Samples:
    """A batch of new records: where they stood in the file, and where they lie in the spool now."""

    dataset: str
    url: str
    format: str
    header: str | None
    epoch: int
    rows: tuple[int, int]
    bytes: tuple[int, int]
    spooled: tuple[int, int] | None


def receive_gm_message(state: JobState, message: DownMessage, facts: Facts) -> _Decision:
    """Take over what GM says of the job; a new waiting condition is judged at once."""
    steps = Steps(state, facts.now, evolve)
    if message.operation == "delete":
        steps.add(e.GlobalManagerMessageReceived, operation="delete", id=message.id)
        if state.is_live:
            steps.add(e.JobDeleted, cause="deleted")
        return steps.events, steps.state
    metadata = _object(message.content.get("metadata"))
    uid = metadata.get("uid")
    if state.is_live and uid is not None and state.uid is not None and uid != state.uid:
        steps.add(e.JobDeleted, cause="replaced")
    begins = not steps.state.is_live
    known = JobState(state.stream) if begins else steps.state
    conditions = _conditions(message.content)
    received = steps.make(
        e.GlobalManagerMessageReceived,
        operation=message.operation,
        id=message.id,
        generation=state.generation + 1 if begins else None,
        kind=_changed(message.content.get("kind"), known.kind),
        metadata=_changed(metadata, known.metadata),
        spec=_changed(message.content["spec"], known.spec),
        conditions=new_conditions(
            conditions, count=known.conditions_count, known=known.conditions_hash, last=known.last_condition
        )
        or (),
        conditions_count=len(conditions),
        conditions_hash=digest(conditions),
        zone=_changed(facts.zone, state.zone),
        model_places=_changed(list(facts.model_places), list(state.model_places)),
    )
    adopted = _adoptable(conditions) if state.generation == 0 else None
    if adopted is None:
        _push_judged(steps, received, facts)
    else:
        steps.push(replace(received, rules=_rules(steps.after(received), facts)))
        steps.add(e.JobAdopted, round=adopted[0], train_data_url=adopted[1], format=adopted[1].rpartition(".")[2])
        if steps.state.is_waiting:
            _judge_now(steps, facts, cause="adopted")
    _react(steps, facts)
    return steps.events, steps.state


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _conditions(content: JsonObject) -> list[JsonObject]:
    conditions = _object(content.get("status")).get("conditions")
    return [c for c in conditions if isinstance(c, dict)] if isinstance(conditions, list) else []


def _changed(value: object, known: object) -> object:
    return None if value == known else value


def _adoptable(conditions: Sequence[JsonObject]) -> tuple[int, str] | None:
    found = [named for condition in conditions if (named := round_of(condition)) is not None]
    return found[-1] if found else None


def receive_worker_result(state: JobState, message: WorkerMessage, now: str) -> _Decision:
    """Record what a worker reported; it is passed on verbatim."""
    steps = Steps(state, now, evolve)
    steps.add(
        e.WorkerResultReceived,
        worker=message.name,
        kind=message.kind,
        status=message.status,
        id=message.id,
        results=message.results,
        owner_info=message.owner_info,
        resource_kind=state.kind,
    )
    return steps.events, steps.state


def receive_duplicate(state: JobState, message_id: str | None, worker: str | None, now: str) -> _Decision:
    """Count a repeat; it changes nothing else."""
    steps = Steps(state, now, evolve)
    steps.add(e.DuplicateReceived, id=message_id, worker=worker)
    return steps.events, steps.state


def confirm_reports(state: JobState, versions: Sequence[int], now: str) -> _Decision:
    """Stop repeating what GM says it has."""
    steps = Steps(state, now, evolve)
    if confirmed := sorted(version for version in set(versions) if state.unconfirmed.holds(version)):
        steps.add(e.ReportsConfirmed, versions=confirmed)
    return steps.events, steps.state


def tick(state: JobState, facts: Facts, *, cause: str, as_of: str | None = None, count: int = 1) -> _Decision:
    """Evaluate the trigger of a waiting job; a job that waits for others has nothing to decide and is not ticked."""
    steps = Steps(state, facts.now, evolve)
    if state.is_waiting:
        _judge_now(steps, facts, cause=cause, as_of=as_of, count=count)
        _react(steps, facts)
    return steps.events, steps.state


def add_samples(state: JobState, samples: Samples, facts: Facts) -> _Decision:
    """Take a batch of records of the job's dataset: the first train, the others evaluate; then look at the trigger.

    A job adopted from another controller counts from the present end: its first batch, all that is there, only sets
    its place.
    """
    steps = Steps(state, facts.now, evolve)
    if not state.is_live:
        return steps.events, steps.state
    skipped = state.starts_at_end
    spooled = None if skipped else samples.spooled
    count = 0 if spooled is None else spooled[1] - spooled[0]
    train = train_share(state.train_prob, state.split_seen, count)
    known = state.source
    arrived = steps.make(
        e.SamplesArrived,
        epoch=samples.epoch,
        rows=list(samples.rows),
        bytes=list(samples.bytes),
        spooled=None if spooled is None else list(spooled),
        train=train,
        eval=count - train,
        dataset=_changed(samples.dataset, known and known.dataset),
        url=_changed(samples.url, known and known.url),
        format=_changed(samples.format, known.format if known else "txt"),
        header=_changed(samples.header or "", (known and known.header) or ""),
    )
    _push_judged(steps, arrived, facts)
    _react(steps, facts)
    return steps.events, steps.state


def _push_judged(
    steps: Steps[JobState], event: e.GlobalManagerMessageReceived | e.SamplesArrived | e.Ticked, facts: Facts
) -> None:
    as_of = event.as_of if isinstance(event, e.Ticked) else None
    after = steps.after(event)
    rules = _rules(after, facts)
    reason, samples, note = _judge(after, facts, as_of or facts.now)
    if isinstance(event, e.SamplesArrived):
        steps.push(replace(event, reason=reason, samples=samples, rules=rules))
    else:
        steps.push(replace(event, reason=reason, samples=samples, note=note, rules=rules))


def _rules(state: JobState, facts: Facts) -> int:
    """The rules that a verdict names.

    Only verdicts at Eval changed with rules 2; others go on naming rules 1, the default that is not stored.
    """
    return facts.rules if state.stage == "Eval" else 1


def _judge_now(steps: Steps[JobState], facts: Facts, *, cause: str, as_of: str | None = None, count: int = 1) -> None:
    ticked = steps.make(
        e.Ticked,
        cause=cause,
        count=count,
        as_of=as_of,
        zone=_changed(facts.zone, steps.state.zone),
        model_places=_changed(list(facts.model_places), list(steps.state.model_places)),
    )
    _push_judged(steps, ticked, facts)


def _judge(state: JobState, facts: Facts, moment: str) -> tuple[str | None, int, str | None]:
    """Reason, samples seen and a note; the reason is None where there is nothing to decide."""
    if not state.is_waiting:
        return None, 0, None
    if state.intent is not None and not _is_superseded(state):
        return "in_progress", state.train_pending_count, None
    if state.stage == "Train":
        samples = state.train_pending_count
        reason = state.trigger.judge(samples, datetime.fromisoformat(moment), state.zone)
        if reason == "no_samples" and facts.dataset_note is not None:
            return "dataset", samples, facts.dataset_note
        return reason, samples, None
    if state.stage == "Deploy":
        return "fired", 0, None
    samples = eval_pending_count(state)
    if not trusted_models(state, facts.rules):
        return "no_model", samples, state.model_note
    return "fired", samples, None


def _is_superseded(state: JobState) -> bool:
    """Whether a model that could not be deployed yet was followed by another one: then that is deployed."""
    intended = None if state.intent is None else state.intent.event
    if not isinstance(intended, e.DeployTriggered) or state.stage != "Deploy" or not state.eval_models:
        return False
    return intended.model is not None and intended.model["url"] != state.eval_models[0]["url"]


def is_trusted_model(url: str, output_dir: str, places: Sequence[str], rules: int = e.RULES) -> bool:
    """Whether a model may be evaluated and deployed, by its URL: a worker must not make us publish `/etc/shadow`.

    A URL of more than 4,096 characters names no file that could be opened, and no object (whose keys end at 1,024
    bytes). By rules 1 that was not asked, and `..` was resolved below the outputDir, or left as it was encoded.
    """
    if rules == 1:
        return below(url, output_dir) or any(lies_in(url, place) for place in places)
    return len(url) <= _URL_CHARACTERS and _lies_in_any(url, (output_dir, *places))


@lru_cache(maxsize=1024)
def _lies_in_any(url: str, folders: tuple[str, ...]) -> bool:
    """Remembered, for a job that waits is judged by the same URLs at every tick, and a worker wrote them."""
    return any(lies_in(url, folder) for folder in folders)


def trusted_models(state: JobState, rules: int = e.RULES) -> list[JsonObject]:
    """The trained models that count: those below the job's outputDir or a place that this node's owner named."""
    places = state.model_places
    return [m for m in state.train_models or () if is_trusted_model(str(m["url"]), state.output_dir, places, rules)]


def _react(steps: Steps[JobState], facts: Facts) -> None:
    """Turn a verdict that fired into an intent."""
    state = steps.state
    verdict = state.verdict
    is_due = state.is_waiting and (state.intent is None or _is_superseded(state))
    if not is_due or verdict is None or (verdict.reason, verdict.stage) != ("fired", state.stage):
        return
    match state.stage:
        case "Train":
            _trigger_training(steps)
        case "Eval":
            _trigger_evaluation(steps, facts.rules)
        case "Deploy":
            _trigger_deployment(steps)


def _trigger_training(steps: Steps[JobState]) -> None:
    state = steps.state
    ranges = one_source(state.train_pending)
    source = state.sources[ranges[0].source]
    round_ = state.round + 1
    steps.add(
        e.TrainingTriggered,
        round=round_,
        waiting=list(state.waiting or ()),
        dataset=source.dataset,
        spooled=[[r.first, r.last] for r in ranges],
        samples=sum(r.size for r in ranges),
        input=_input(state, source, "train", round_),
        facts=state.trigger.facts(state.train_pending_count, state.zone),
        header=source.header,
        indexed=_indexed(source),
    )


def _trigger_evaluation(steps: Steps[JobState], rules: int) -> None:
    state = steps.state
    round_ = state.round
    file = eval_file(state, round_)
    steps.add(
        e.EvaluationTriggered,
        round=round_,
        waiting=list(state.waiting or ()),
        dataset=file.source.dataset,
        spooled=[[r.first, r.last] for r in file.ranges],
        taken=[[r.first, r.last] for r in file.taken],
        samples=sum(r.size for r in file.ranges),
        input={"models": trusted_models(state, rules), **_input(state, file.source, "eval", round_)},
        header=file.source.header,
        indexed=_indexed(file.source),
        existing=bool(round_) and round_ == state.existing_eval_round,
        rules=rules,
    )


def _trigger_deployment(steps: Steps[JobState]) -> None:
    state = steps.state
    waiting = list(state.waiting or ())
    if not state.eval_models:
        steps.add(
            e.DeployTriggered,
            round=state.round,
            waiting=waiting,
            model=None,
            resource_kind=state.kind,
        )
        return
    evaluated = state.eval_models[0]
    steps.add(
        e.DeployTriggered,
        round=state.round,
        waiting=waiting,
        model={"format": evaluated.get("format"), "url": evaluated["url"], "classes": None},
        target=f"{state.output_dir}/deploy/index.pkl",
        resource_kind=state.kind,
    )


def _input(state: JobState, source: Source, stage: str, round_: int) -> JsonObject:
    """Sedna's `input` for a stage: `dataIndexURL` only for a txt dataset in S3."""
    folder = f"{state.output_dir}/data/{stage}/{round_}"
    urls = {"dataURL": f"{folder}/data.{source.format}"}
    if _indexed(source) is not None:
        urls["dataIndexURL"] = f"{folder}/dataIndex.txt"
    return {**urls, "outputDir": f"{state.output_dir}/{stage}/{round_}"}


def _indexed(source: Source) -> str | None:
    return source.url if source.format == "txt" and is_s3(source.url) else None
