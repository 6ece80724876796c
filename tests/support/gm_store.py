"""What the store of a global manager holds, read beside the running program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lc_events.application.journal import open_journal
from lc_events.gm.events import GM_EVENTS
from lc_events.gm.job import GmJob
from lc_events.gm.ledger import fold_stream
from lc_events.gm.views import job_view
from lc_events.messages.json import dumps, loads


def stored_job(state_dir: Path, name: str) -> Any:
    """A job as `show -o json` prints it."""
    stream = f"default/lifelonglearningjob/{name}"
    journal = open_journal(state_dir / "events.db", GM_EVENTS)
    try:
        job = fold_stream(stream, journal.stream(stream))
    finally:
        journal.close()
    assert isinstance(job, GmJob)
    return loads(dumps(job_view(job)))
