"""The agent that runs a job's programs on a node and reports; programs import only `report` and `fetch` from here."""

from __future__ import annotations

from lc_events.workers.fetch import fetch
from lc_events.workers.result import report

__all__ = ["fetch", "report"]
