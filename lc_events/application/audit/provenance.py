"""Which data made a round's model: record ranges, files, hashes, the model that was deployed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lc_events.domain import events as e
from lc_events.domain.arrivals import Arrival, Records, arrivals
from lc_events.domain.events import Event
from lc_events.errors import NotFoundError
from lc_events.messages.json import Json, JsonObject

__all__ = ["Provenance", "SampleFile", "provenance", "records_of"]


class SampleFile(NamedTuple):
    """A train or eval file: decided by `version`, with `records` in it; `files` were written by version `written`."""

    version: int
    time: str
    samples: int
    records: Sequence[Records]
    files: Sequence[JsonObject] = ()
    written: int | None = None


class Provenance(NamedTuple):
    """Of one round; what has not happened yet is None."""

    generation: int
    round: int
    train: SampleFile
    eval: SampleFile | None
    results: Sequence[JsonObject]
    model: JsonObject | None
    """As section 5 has it, with `source` (the evaluated model's URL, the copy's source) and `version`."""
    replaced: Mapping[str, int]
    """URLs of these files that were written again later, to the version that did it."""

    @property
    def newest(self) -> int:
        """The version of the last event of this round."""
        parts = (self.train, self.eval)
        versions = [part.written or part.version for part in parts if part is not None]
        return max([*versions, *([] if self.model is None else [int(str(self.model["version"]))])])

    def to_json(self) -> dict[str, Json]:
        """Keys as the fields; record ranges as `rows` and `bytes`."""
        return {
            "generation": self.generation,
            "round": self.round,
            "train": _file_json(self.train),
            "eval": None if self.eval is None else _file_json(self.eval),
            "results": list(self.results),
            "model": self.model,
            "replaced": dict(self.replaced),
        }


def _file_json(file: SampleFile) -> dict[str, Json]:
    records: list[Json] = [
        {**each._asdict(), "rows": list(each.rows), "bytes": list(each.bytes)} for each in file.records
    ]
    return {**file._asdict(), "records": records, "files": list(file.files)}


def provenance(events: Sequence[Event], round_: int, generation: int | None = None) -> Provenance:
    """Look a round up in a job's events, in the newest life of the name that has one unless a generation is given.

    Raises NotFoundError if no such round was decided.
    """
    arrived = arrivals(events)
    for number, life in reversed(list(_lives(events))):
        if generation in (None, number) and (found := _of_life(number, life, round_, arrived)) is not None:
            return found._replace(replaced=_replaced(found, events))
    of = f" of generation {generation}" if generation is not None else ""
    rounds = sorted({event.round for event in events if isinstance(event, e.TrainingTriggered)})
    raise NotFoundError(
        f"round {round_}{of} was not decided here; rounds are {', '.join(map(str, rounds)) or 'none yet'}"
    )


def _lives(events: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    number = 0
    life: list[Event] = []
    for event in events:
        if isinstance(event, e.GlobalManagerMessageReceived) and event.generation is not None:
            if life:
                yield number, life
            number, life = event.generation, []
        life.append(event)
    yield number, life


def _of_life(number: int, life: Sequence[Event], round_: int, arrived: Sequence[Arrival]) -> Provenance | None:
    train: SampleFile | None = None
    eval_: SampleFile | None = None
    model: JsonObject | None = None
    results: list[JsonObject] = []
    for event in life:
        match event:
            case e.TrainingTriggered(round=found) if found == round_:
                train = _begun(event, arrived)
            case e.TrainDataWritten(round=found) if found == round_ and train is not None:
                train = train._replace(files=event.files, written=event.originator_version)
            case e.EvaluationTriggered(round=found) if found == round_:
                eval_ = _begun(event, arrived)
            case e.EvalDataWritten(round=found) if found == round_ and eval_ is not None:
                eval_ = eval_._replace(files=event.files, written=event.originator_version)
            case e.ModelDeployed(round=found) if found == round_:
                model = _model(event)
            case e.TrainingTriggered() if train is not None:
                break
            case e.WorkerResultReceived() if train is not None:
                results.append(_result(event))
    return None if train is None else Provenance(number, round_, train, eval_, results, model, {})


def _replaced(found: Provenance, events: Sequence[Event]) -> dict[str, int]:
    """A later life writes to the same paths, a later round deploys over an earlier one."""
    own = {str(file["url"]) for part in (found.train, found.eval) if part is not None for file in part.files}
    own |= set() if found.model is None else {str(found.model["url"])}
    replaced: dict[str, int] = {}
    for event in events:
        match event:
            case e.TrainDataWritten() | e.EvalDataWritten():
                written = {str(file["url"]) for file in event.files}
            case e.ModelDeployed():
                written = {event.url}
            case _:
                continue
        if event.originator_version > found.newest:
            replaced |= dict.fromkeys(written & own, event.originator_version)
    return replaced


def _begun(event: e.TrainingTriggered | e.EvaluationTriggered, arrived: Sequence[Arrival]) -> SampleFile:
    return SampleFile(event.originator_version, event.time, event.samples, records_of(event, arrived))


def records_of(event: e.TrainingTriggered | e.EvaluationTriggered, arrived: Sequence[Arrival]) -> list[Records]:
    """The records that a train or eval file was decided to hold, of the arrivals in the whole history of the job."""
    return [found for first, last in event.spooled for found in _found(event.dataset, first, last, arrived)]


def _found(dataset: str, first: int, last: int, arrived: Sequence[Arrival]) -> Iterator[Records]:
    """Where spool positions `[first, last)` of a dataset came from; one arrival may hold a part of them."""
    for arrival in arrived:
        begin, end = max(first, arrival.spooled[0]), min(last, arrival.spooled[1])
        if arrival.records.dataset == dataset and begin < end:
            row = arrival.records.rows[0] - arrival.spooled[0]
            yield arrival.records._replace(rows=(begin + row, end + row))


def _model(event: e.ModelDeployed) -> JsonObject:
    return {
        "round": event.round,
        "url": event.url,
        "format": event.format,
        "sha256": event.sha256,
        "size": event.size,
        "time": event.time,
        "source": event.model.get("url"),
        "version": event.originator_version,
    }


def _result(event: e.WorkerResultReceived) -> JsonObject:
    return {
        "version": event.originator_version,
        "time": event.time,
        "worker": event.worker,
        "kind": event.kind,
        "status": event.status,
        "results": event.results,
    }
