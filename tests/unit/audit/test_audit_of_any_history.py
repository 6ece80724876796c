"""Whatever a job may live through: what its history proves does not depend on it."""

from __future__ import annotations

from typing import Any

from hypothesis import given as for_any
from hypothesis import settings
from support.given import STREAM, through_json
from unit.domain.test_any_sequence import lived, relentless, sequences

from lc_events.application.audit.deciding import follow_controller


@settings(relentless, max_examples=60)
@for_any(sequences)
def test_every_decision_follows_from_the_facts_recorded_before_it(steps: list[Any]):
    device = lived(steps)
    recorded = [through_json(event) for event in device.events]
    notes: list[str] = []

    followed = list(follow_controller(STREAM, recorded, notes))

    assert followed == recorded
    assert notes == []
