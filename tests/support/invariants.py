"""What must hold of a controller's store, files and topics after any accident."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from lc_events.application.chain import EMPTY, next_hash
from lc_events.domain import events as e
from lc_events.domain.dataset import fold_dataset
from lc_events.domain.job_fold import fold
from lc_events.domain.views import dataset_view, job_view
from lc_events.messages.json import dumps, loads
from support.local_controller import ControllerProcess
from support.sample_audit import audit_samples

Histories = dict[str, list[e.Event]]


def histories(lc: ControllerProcess) -> Histories:
    """The events of every stream; AssertionError at a gap or a link that fails."""
    journal = lc.journal()
    found: Histories = {}
    try:
        for stream, rows in groupby(journal.rows.scan(), key=lambda row: row.stream):
            hash_, found[stream] = EMPTY, []
            for version, row in enumerate(rows, start=1):
                hash_ = next_hash(hash_, stream, version, row.name, row.state)
                assert (row.version, row.hash) == (version, hash_), f"{stream}: version {version}"
                found[stream].append(journal.decode(row))
    finally:
        journal.close()
    return found


def not_once(streams: Histories, ids: Iterable[str]) -> dict[str, int]:
    """Messages that are not in the log once, besides the repeats that were counted as such: how often they are."""
    taken = Counter(
        event.id
        for events in streams.values()
        for event in events
        if isinstance(event, e.GlobalManagerMessageReceived | e.WorkerResultReceived)
    )
    return {message_id: taken[message_id] for message_id in ids if taken[message_id] != 1}


def differing(lc: ControllerProcess, streams: Histories) -> dict[str, tuple[object, object]]:
    """Topics whose newest retained value is not what a replay gives: that value, and the replayed one."""
    found = {}
    for stream, events in streams.items():
        namespace, kind, name = stream.split("/")
        if kind == "dataset":
            dataset = fold_dataset(stream, events)
            topic, view = "datasets", dataset_view(dataset) if dataset.is_live else None
        else:
            job = fold(stream, events)
            topic, view = "jobs", job_view(job, lc.node) if job.is_live else None
        topic = f"state/{{node}}/{topic}/{namespace}/{name}"
        published, replayed = lc.latest(topic), loads(dumps(view))
        if published != replayed:
            found[topic] = (published, replayed)
    return found


def assert_files_are_whole(lc: ControllerProcess, streams: Histories) -> int:
    """Sample files are what the newest event of their path says, rounds 1 to n without a gap; how many rounds."""
    rounds = 0
    for events in streams.values():
        written: dict[str, e.TrainDataWritten | e.EvalDataWritten] = {}
        trained: list[int] = []
        for event in events:
            if isinstance(event, e.GlobalManagerMessageReceived) and event.generation is not None:
                trained = []
            if isinstance(event, e.TrainDataWritten | e.EvalDataWritten):
                written[str(event.files[0]["url"])] = event
            if isinstance(event, e.TrainDataWritten):
                trained.append(event.round)
        assert trained == list(range(1, len(trained) + 1))
        rounds += len(trained)
        for url, event in written.items():
            data = lc.file(url).read_bytes()
            file = event.files[0]
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["size"], file["sha256"]), url
            if url.endswith(".txt"):
                assert data.count(b"\n") == file["records"], url
    return rounds


def assert_invariants(lc: ControllerProcess, ids: Iterable[str] = ()) -> Histories:
    """All of them, once the running controller has come to rest and has taken what was sent."""
    deadline = time.monotonic() + 15
    while (faults := differing(lc, streams := histories(lc)) or not_once(streams, ids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not faults
    for stream, events in streams.items():
        if "/lifelonglearningjob/" in stream:
            audit_samples(events)
    assert_files_are_whole(lc, streams)
    return streams
