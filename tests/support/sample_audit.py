"""The promise about samples (DESIGN 1.1), checked from a job's events alone, without the fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from lc_events.domain import events as e

WINDOW = 5

Sample = tuple[str, int]
"""Dataset and position in its spool."""


@dataclass
class _Life:
    """One generation of the job."""

    header: dict[Sample, str | None] = field(default_factory=dict)
    train: set[Sample] = field(default_factory=set)
    eval: list[Sample] = field(default_factory=list)
    trained: dict[Sample, int] = field(default_factory=dict)
    own_round: dict[Sample, int] = field(default_factory=dict)
    eval_files: dict[int, tuple[str | None, list[Sample]]] = field(default_factory=dict)
    dataset: str = ""
    current_header: str | None = None
    probability: float | None = None
    since: int = 0
    trained_since: int = 0


def audit_samples(events: Iterable[e.Event]) -> int:
    """Assert the promise for every generation; how many samples were counted in all."""
    life, counted = _Life(), 0
    for event in events:
        match event:
            case e.GlobalManagerMessageReceived():
                if event.generation is not None:
                    counted += _finished(life)
                    life = _Life()
                _note_probability(life, event)
            case e.SamplesArrived():
                _arrived(life, event)
            case e.TrainingTriggered():
                _trained(life, event)
            case e.EvaluationTriggered():
                _evaluated(life, event)
    return counted + _finished(life)


def _samples(dataset: str, ranges: Sequence[Sequence[int]]) -> Iterator[Sample]:
    return ((dataset, position) for first, last in ranges for position in range(first, last))


def _note_probability(life: _Life, event: e.GlobalManagerMessageReceived) -> None:
    if event.spec is not None:
        probability = event.spec["dataset"]["trainProb"]  # type: ignore[index, call-overload]
        if probability != life.probability:
            life.probability, life.since, life.trained_since = probability, 0, 0  # type: ignore[assignment]


def _arrived(life: _Life, event: e.SamplesArrived) -> None:
    life.dataset = event.dataset if event.dataset is not None else life.dataset
    if event.header is not None:
        life.current_header = event.header or None
    if event.spooled is None:
        assert (event.train, event.eval) == (0, 0)
        return
    new = list(_samples(life.dataset, [event.spooled]))
    assert len(new) == event.train + event.eval
    assert life.header.keys().isdisjoint(new), "counted twice"
    life.header.update(dict.fromkeys(new, life.current_header))
    life.train.update(new[: event.train])
    life.eval.extend(new[event.train :])
    life.since += len(new)
    life.trained_since += event.train
    assert life.trained_since == int(Decimal(repr(float(life.probability or 0))) * life.since)


def _trained(life: _Life, event: e.TrainingTriggered) -> None:
    file = list(_samples(event.dataset, event.spooled))
    assert len(file) == event.samples > 0
    for sample in file:
        assert sample in life.train, "never counted as a train sample"
        assert sample not in life.trained, "in two train files"
        assert life.header[sample] == event.header, "two headers in one file"
        life.trained[sample] = event.round


def _evaluated(life: _Life, event: e.EvaluationTriggered) -> None:
    file = list(_samples(event.dataset, event.spooled))
    assert len(file) == event.samples == len(set(file)), "twice in one eval file"
    assert set(file).isdisjoint(life.train)
    before = life.eval_files.get(event.round, (None, []))[1]
    assert set(before) <= set(file) or event.existing, "a sample left the file of its round"
    for sample in _samples(event.dataset, event.taken):
        assert sample not in life.own_round
        life.own_round[sample] = event.round
    for sample in file:
        assert life.header[sample] == event.header, "two headers in one file"
        assert 0 <= event.round - life.own_round[sample] < WINDOW, "outside its five rounds"
    if not event.existing:
        life.eval_files[event.round] = (event.header, file)
        pending = [s for s in life.eval if s not in life.own_round]
        assert not pending or _differs(life, pending[0], event), "an eval sample was left out"


def _differs(life: _Life, sample: Sample, event: e.EvaluationTriggered) -> bool:
    return (sample[0], life.header[sample]) != (event.dataset, event.header)


def _finished(life: _Life) -> int:
    assert life.trained.keys() <= life.train
    assert life.train.isdisjoint(life.eval)
    assert life.own_round.keys() <= set(life.eval)
    for sample, own in life.own_round.items():
        for round_, (header, file) in life.eval_files.items():
            is_due = own <= round_ < own + WINDOW and header == life.header[sample]
            if is_due and any(other[0] == sample[0] for other in file):
                assert sample in file, f"missing from the eval file of round {round_}"
    return len(life.header)
