from __future__ import annotations

import json

import pytest
from support.link import Link
from support.program import EXAMPLES, Program

SCRIPT = EXAMPLES / "subscriber" / "subscriber.py"


def subscriber(lc, folder, url, *arguments):
    return Program(folder, SCRIPT, "job1", "--node", lc.node, "--root", lc.topic_root, "--url", url, *arguments)


def checked(folder):
    """Version and hash in the subscriber's file: they stand for the whole history."""
    kept = json.loads((folder / "default.job1.json").read_text())
    return kept["version"], kept["hash"]


def line_of(version):
    """How the line of a checked event begins."""
    return f"\n{version:6} "


def stored(lc):
    """Version and hash of the controller's own store."""
    journal = lc.journal()
    try:
        return tuple(journal.head("default/lifelonglearningjob/job1"))
    finally:
        journal.close()


@pytest.fixture(params=["5", "3.1.1"])
def protocol(request):
    return request.param


def test_started_late_it_asks_for_all_and_ends_equal_to_the_controller(place, protocol, tmp_path):
    place.work(120)
    with subscriber(place.lc, tmp_path, place.url(protocol), "--mqtt", protocol, "--once") as program:
        ended = program.ended()
    version, hash_ = checked(tmp_path)
    assert ended.code == 0, ended.err
    assert ended.out.endswith(f"\nat version {version}, chain checked\n")
    assert (version, hash_) == stored(place.lc)
    assert [int(line.split()[0]) for line in ended.out.splitlines()[:-1]] == list(range(1, version + 1))


def test_with_a_gap_cut_into_it_it_fills_the_gap_and_ends_equal_to_the_controller(place, protocol, tmp_path):
    with Link(place.ports[protocol]) as link:
        first = place.work(3)
        with subscriber(place.lc, tmp_path, place.url(protocol, link.port), "--mqtt", protocol) as program:
            program.says(f"at version {first}, chain checked")
            live = place.work(2)
            program.says(line_of(live))
            link.cut()
            place.work(130)
            link.mend()
            last = place.work(2)
            program.says(line_of(last))
            ended = program.interrupt()
    assert ended.code == 130
    assert checked(tmp_path) == stored(place.lc)
    versions = [int(line.split()[0]) for line in ended.out.splitlines() if not line.startswith("at")]
    assert versions == list(range(1, last + 1))


def test_after_a_restart_it_goes_on_from_its_file(place, protocol, tmp_path):
    options = ("--mqtt", protocol, "--once")
    first = place.work(1)
    with subscriber(place.lc, tmp_path, place.url(protocol), *options) as program:
        assert program.ended().code == 0
    last = place.work(2)
    with subscriber(place.lc, tmp_path, place.url(protocol), *options) as program:
        ended = program.ended()
    assert [int(line.split()[0]) for line in ended.out.splitlines()[:-1]] == list(range(first + 1, last + 1))
    with subscriber(place.lc, tmp_path, place.url(protocol), *options) as program:
        assert program.ended().out == f"at version {last}, chain checked\n"


def test_events_that_others_made_up_are_not_taken(place, tmp_path):
    first = place.work(1)
    forged = {"sequence": first + 1, "type": "io.sedna.lc.Ticked.v1", "time": "x", "hash": "0" * 64, "prevhash": ""}
    topic = place.lc.topic("events/{node}/jobs/default/job1")
    with subscriber(place.lc, tmp_path, place.url("5")) as program:
        program.says(f"at version {first}, chain checked")
        for payload in (
            {**forged, "data": {}},
            {**forged, "sequence": 10**9, "data": {}},
            {"sequence": "x"},
            "\x1b[2J",
        ):
            place.lc.tap.publish(topic, payload)
        program.says(f"at version {first}, chain checked", times=2)
        program.says(line_of(place.work(1)))
        ended = program.interrupt()
    assert checked(tmp_path) == stored(place.lc)
    assert "\x1b" not in ended.out + ended.err


def test_without_such_a_job_it_says_so(place, tmp_path):
    arguments = (SCRIPT, "nothing", "--node", "edge1", "--root", place.lc.topic_root, "--url", place.url("5"), "--once")
    with Program(tmp_path, *arguments, "--timeout", 1) as program:
        ended = program.ended()
    assert ended.code == 3
    assert "are node and job right?" in ended.err


def test_a_broker_out_of_reach_and_one_that_refuses_are_told(place, tmp_path):
    with Link(place.ports["5"]) as link:
        link.cut()
        with subscriber(place.lc, tmp_path, place.url("5", link.port), "--once", "--timeout", 0.5) as program:
            assert program.ended()[::2] == (6, "subscriber: no connection to the broker\n")
    if place.login:
        url = f"mqtt://me:wrong@127.0.0.1:{place.ports['5']}"
        with subscriber(place.lc, tmp_path, url, "--once", "--timeout", 0.5) as program:
            assert program.ended().code == 6


@pytest.mark.parametrize("change", ["another", "longer"])
def test_a_history_that_is_not_the_one_seen_before_is_not_taken_for_it(place, tmp_path, change):
    version, hash_ = place.work(1), "0" * 64
    kept = {"stream": "default/lifelonglearningjob/job1", "version": version - 1, "hash": hash_}
    if change == "longer":
        kept["version"] = version + 3
    (tmp_path / "default.job1.json").write_text(json.dumps(kept))
    with subscriber(place.lc, tmp_path, place.url("5"), "--once") as program:
        ended = program.ended()
    assert ended.code == 5
    assert ("does not reach version" if change == "longer" else "is not the one that was checked before") in ended.err
    assert json.loads((tmp_path / "default.job1.json").read_text()) == kept


def test_a_head_that_the_history_does_not_reach_is_told(place, tmp_path):
    topic, head = place.lc.topic("state/{node}/heads/default/job1"), place.head()
    place.lc.tap.publish(topic, {"version": 10**6, "hash": "0" * 64, "time": "x"}, retain=True)
    with subscriber(place.lc, tmp_path, place.url("5"), "--once") as program:
        ended = program.ended()
    place.lc.tap.publish(topic, head, retain=True)
    assert ended.code == 5
    assert "does not reach version 1000000" in ended.err
