"""Whatever is changed in a history, it is found, unless it still says the same."""

from __future__ import annotations

from functools import cache

import orjson
from hypothesis import given as for_any
from hypothesis import settings
from hypothesis import strategies as st
from support.given import STREAM
from support.histories import FOLDER, read_history
from support.rounds import two_rounds

from lc_events.application.audit.controller import CONTROLLER
from lc_events.application.audit.exports import read_export
from lc_events.application.audit.verify import check_export, check_stream
from lc_events.application.chain import next_hash
from lc_events.application.mapper import EventMapper
from lc_events.application.recorder import StoredRow
from lc_events.errors import UsageError

MAPPER = EventMapper(CONTROLLER.registry)
LINES = (FOLDER / "adopted.jsonl").read_bytes()


@cache
def rows() -> tuple[StoredRow, ...]:
    """Two rounds as they lie in a store."""
    found, hash_ = [], ""
    for event in two_rounds().history().events:
        stored = MAPPER.to_stored_event(event)
        hash_ = next_hash(hash_, STREAM, event.originator_version, stored.topic, stored.state)
        version = event.originator_version
        found.append(StoredRow(version, STREAM, version, stored.topic, stored.state, hash_))
    return tuple(found)


def check(changed):
    def decode(row):
        return MAPPER.decode(row.stream, row.version, row.name, row.state)

    return check_stream(STREAM, changed, decode=decode, follow=CONTROLLER.follow)


@settings(max_examples=80)
@for_any(st.data())
def test_a_changed_byte_of_an_event_is_found_at_its_version(data):
    number = data.draw(st.integers(0, len(rows()) - 1))
    row = rows()[number]
    at = data.draw(st.integers(0, len(row.state) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda new: new != row.state[at]))
    changed = row._replace(state=row.state[:at] + bytes([byte]) + row.state[at + 1 :])

    checked = check([*rows()[:number], changed, *rows()[number + 1 :]])

    assert (checked.ok, checked.version) == (False, row.version)


@settings(max_examples=80)
@for_any(st.permutations(range(len(rows()))), st.integers(0, len(rows())))
def test_events_in_another_order_are_found_at_the_first_that_is_out_of_place(order, keep):
    order = [*range(keep), *(n for n in order if n >= keep)]
    moved = next((n for n, other in enumerate(order) if n != other), None)

    checked = check([rows()[n] for n in order])

    assert checked.ok == (moved is None)
    assert moved is None or checked.version == moved + 1


@settings(max_examples=150)
@for_any(st.integers(0, len(LINES) - 1), st.integers(0, 255))
def test_a_changed_byte_of_an_export_is_found_unless_it_says_the_same(at, byte):
    changed = LINES[:at] + bytes([byte]) + LINES[at + 1 :]
    try:
        exported = list(read_export(changed.splitlines()))
        found = check_export(exported, kind=CONTROLLER, heads={})
    except UsageError:
        return  # no line of an export any more
    if all(checked.ok for checked in found):
        assert list(map(orjson.loads, changed.splitlines())) == list(map(orjson.loads, LINES.splitlines()))


def test_the_history_that_is_changed_here_is_sound():
    assert check(rows()).ok
    exported = read_history(FOLDER / "adopted.jsonl")
    assert all(checked.ok for checked in check_export(exported, kind=CONTROLLER, heads={}))
