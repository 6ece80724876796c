"""The agent that runs a job's programs on a node and reports; programs import only `report` from here."""

from __future__ import annotations

from lc_events.workers.result import report

__all__ = ["report"]
