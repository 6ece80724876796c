"""Which samples the eval file of a round holds: those of the last 5 rounds, oldest first, each once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from lc_events.domain.job import JobState, SampleRange, Source

__all__ = ["EvalFile", "eval_file", "eval_pending_count", "one_source"]


class EvalFile(NamedTuple):
    """`ranges` are all that the file holds; `taken`, the last of them, belong to this round from now on."""

    source: Source
    ranges: Sequence[SampleRange]
    taken: Sequence[SampleRange]


def one_source(ranges: Sequence[SampleRange]) -> Sequence[SampleRange]:
    """The oldest ranges of one source: a file never mixes two csv headers, the others wait for a later round."""
    return list(takewhile(lambda r: r.source == ranges[0].source, ranges))


def eval_file(state: JobState, round_: int) -> EvalFile:
    """The eval file of a round as it would be decided now.

    It holds one source: that of the samples which the round has already, else of the oldest pending, else of the
    newest repeated. Where another controller wrote the round's file, it stays as it is and pending samples wait.
    """
    if round_ and round_ == state.existing_eval_round:
        return EvalFile(_source(state, state.source_number), (), ())
    own = state.eval_ranges(round_)
    repeated = [r for _, ranges in state.eval_window(round_) for r in ranges]
    first = [*own[:1], *state.eval_pending[:1], *repeated[-1:]]
    number = first[0].source if first else state.source_number
    pending = one_source(state.eval_pending)
    taken = pending if pending and pending[0].source == number else ()
    return EvalFile(_source(state, number), [r for r in (*repeated, *own, *taken) if r.source == number], taken)


def _source(state: JobState, number: int) -> Source:
    return state.sources[number] if state.sources else Source("", "", state.adopted_format, None)


def eval_pending_count(state: JobState) -> int:
    """The samples that the next eval file will hold."""
    return sum(r.size for r in eval_file(state, state.next_eval_round).ranges)
