from __future__ import annotations

from datetime import timedelta

import pytest
from support.given import STREAM
from support.stores import stored

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.why import why
from lc_events.application.journal import open_journal
from lc_events.domain.stamp import stamp


@pytest.fixture
def ask(tmp_path):
    """Ask why of a history, at its own end or some time after."""

    def asked(rounds, *, later=timedelta(), time=None, dataset=()):
        store = tmp_path / f"{len(list(tmp_path.glob('*.db')))}.db"
        path = stored(store, rounds.history().events, *dataset)
        archive = Archive(open_journal(path, CONTROLLER.registry), CONTROLLER, "edge1")
        return why(archive, STREAM, now=stamp(rounds.now + later), time=time)

    return asked
