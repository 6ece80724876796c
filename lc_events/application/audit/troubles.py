"""What keeps a job from going on that its state alone does not show, each in a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.silence import dataset_at, silence
from lc_events.application.given_up import given_up
from lc_events.domain.job import JobState
from lc_events.messages.names import DATASET_KIND, stream_id

__all__ = ["troubles"]


def troubles(archive: Archive[Any], state: object, show: Callable[[str], str], *, time: str | None = None) -> list[str]:
    """An effect that fails and is tried again, a model that was given up, a dataset that gives no samples.

    `show` writes a time; the dataset is looked up as of `time`, else as it is now. Of a global manager's jobs: nothing.
    """
    if not isinstance(state, JobState):
        return []
    found = []
    if (intent := state.intent) is not None and (failure := state.failure) is not None:
        what = f"{intent.stage} of round {intent.round}"
        found.append(f"{what} fails since {show(failure.since)}, and is tried again: {failure.error}")
    if (final := given_up(archive.journal, state.stream, until=state.version)) is not None:
        found.append(f"{final.stage} of round {final.round} was given up")
    is_said = state.verdict is not None and state.verdict.reason == "dataset"
    if state.is_live and not is_said:
        dataset = dataset_at(archive, stream_id(state.namespace, DATASET_KIND, str(state.dataset_name)), time)
        if (cause := silence(archive, dataset)) is not None:
            found.append(cause.words(show))
    return found
