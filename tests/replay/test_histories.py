from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import pytest
from support.histories import events_by_stream, histories, kind_of, read_history, states_of

from lc_events.application.audit.archive import Archive
from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.exports import export_lines
from lc_events.application.audit.verify import check_export, check_store
from lc_events.application.importing import import_rows
from lc_events.application.journal import open_journal
from lc_events.application.mapper import EventMapper
from lc_events.application.snapshot_json import SCHEMA, read_state, write_state
from lc_events.application.snapshots import Snapshots
from lc_events.domain.events import Event, Registry

every_history = pytest.mark.parametrize("path", histories(), ids=lambda path: path.stem)


@every_history
def test_its_links_hold_and_its_decisions_follow(path):
    exported = read_history(path)

    assert [c for c in check_export(exported, kind=kind_of(exported), heads={}) if not c.ok] == []


@every_history
def test_it_folds_to_the_states_that_it_always_did(path):
    assert states_of(read_history(path)) == json.loads(path.with_suffix(".states.json").read_text())


@every_history
def test_imported_it_is_the_same_store(path, tmp_path):
    exported = read_history(path)
    kind, node = kind_of(exported), exported[0].node
    journal = open_journal(tmp_path / "events.db", kind.registry, write=True)
    import_rows(journal, node, [each.row for each in exported])

    assert [c for c in check_store(Archive(journal, kind, node), {}) if not c.ok] == []
    assert b"".join(line + b"\n" for line in export_lines(node, journal.rows.scan())) == path.read_bytes()


@pytest.mark.parametrize(
    "path", [p for p in histories() if kind_of(read_history(p)) is CONTROLLER], ids=lambda p: p.stem
)
def test_any_snapshot_of_it_loads_as_what_it_folds_to(path):
    exported, kind = read_history(path), CONTROLLER
    for stream, events in events_by_stream(exported).items():
        state = kind.fresh(stream)
        for event in events:
            state = kind.evolve(state, event)
            assert read_state(stream, write_state(state)) == state


def test_a_snapshot_that_no_longer_loads_is_dropped_and_made_again(tmp_path):
    exported = read_history(next(path for path in histories() if path.stem == "digits"))
    stream = "default/lifelonglearningjob/digits"
    journal = open_journal(tmp_path / "events.db", CONTROLLER.registry, write=True)
    import_rows(journal, "edge1", [each.row for each in exported])
    archive = Archive(journal, CONTROLLER, "edge1")
    whole = archive.state(stream)
    Snapshots(journal, every=10).consider([whole])
    kept = journal.rows.snapshots(stream, schema=SCHEMA)
    journal.rows.save_snapshot(kept[0]._replace(schema="0-older", state=b'{"a":"state of another release"}'))

    assert archive.state(stream) == whole
    snapshots = Snapshots(journal, every=10)
    assert journal.rows.newest_snapshots() == {}
    snapshots.consider([whole])
    assert journal.rows.snapshots(stream, schema=SCHEMA) == kept
    assert archive.state(stream) == whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked(Event):
    """As it might be one day: what set the tick off got another name, and its samples are never left out."""

    reason_of_tick: str
    samples: int

    class_version: ClassVar[int] = 3

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        state["reason_of_tick"] = state.pop("cause")

    @staticmethod
    def upcast_v2_v3(state: dict[str, Any]) -> None:
        state.setdefault("samples", 0)


def test_an_event_of_an_older_version_is_read_as_the_present_one():
    mapper = EventMapper(Registry([Ticked]))
    time = "2024-01-01T00:00:00.000000Z"
    expected = Ticked(originator_id="s", originator_version=1, time=time, reason_of_tick="period", samples=0)

    first = {"time": time, "cause": "period"}
    second = {"time": time, "reason_of_tick": "period", "class_version": 2}
    for stored in (first, second):
        assert mapper.decode("s", 1, "Ticked", orjson.dumps(stored)) == expected
    assert orjson.loads(mapper.to_stored_event(expected).state)["class_version"] == 3
    assert mapper.to_domain_event(mapper.to_stored_event(expected)) == expected
