"""Programs whose samples, models and output lie in S3: fetched before, uploaded after, as with local files."""

from __future__ import annotations

import queue
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from support.s3 import objects, storage_at
from support.s3_proxy import Fault
from support.waiting import eventually

from lc_events.messages.worker import WorkOrder
from lc_events.storage import S3Clients
from lc_events.workers.execution import Execution
from lc_events.workers.journal import Journal
from lc_events.workers.settings import AgentSettings

REPORT = """
import os
from pathlib import Path
from lc_events.workers import fetch, report
output = Path(os.environ["OUTPUT_URL"])
"""


class Trial:
    """Runs one order whose objects lie behind `endpoint`, and says what came of it."""

    def __init__(self, folder, endpoint, prefix, program, *, env=None, stage="Train", turns=None, timeout=1.0):
        self.folder = folder / "state"
        environ = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "S3_ENDPOINT_URL": f"http://{endpoint}",
            "ACCESS_KEY_ID": "any",
            "SECRET_ACCESS_KEY": "any-secret",
        }
        settings = AgentSettings(
            node="edge1", state_dir=self.folder, root=folder, environ=environ, s3_timeout_seconds=timeout
        )
        order = WorkOrder.model_validate(
            {
                "id": "o-1",
                "job": "job1",
                "stage": stage,
                "round": 2,
                "command": ["python"],
                "args": ["-c", REPORT + textwrap.dedent(program)],
                "env": env or {},
                "output_url": f"{prefix}/out/train/2",
            }
        )
        run = Journal(settings.state_dir).accept("w1", order, None)
        assert run
        self.run = run
        self.started = threading.Event()
        self.turns_over = 0
        self._finished = queue.SimpleQueue()
        self.execution = Execution(
            run,
            settings,
            on_started=lambda *_: self.started.set(),
            on_finished=lambda _, outcome: self._finished.put(outcome),
            on_turn_over=self._turn_over,
            turns=turns,
            clients=S3Clients(timeout=timeout),
        )

    def _turn_over(self):
        self.turns_over += 1

    def start(self):
        self.execution.start()
        return self

    def ended(self):
        outcome = self._finished.get(timeout=30)
        assert self.execution.join(10)
        assert not (self.run.work_folder / "objects").exists()
        return outcome

    def succeeds(self):
        outcome = self.start().ended()
        assert outcome.status == "completed", outcome
        return outcome

    def fails(self):
        outcome = self.start().ended()
        assert outcome.status == "failed"
        return outcome.owner_info["error"]


@pytest.fixture
def trial(tmp_path, proxy, prefix):
    def make(program, **changes):
        changes["env"] = {name: value.replace("PREFIX", prefix) for name, value in changes.get("env", {}).items()}
        return Trial(tmp_path, proxy.endpoint, prefix, program, **changes)

    return make


def test_a_program_reads_objects_as_files_and_what_it_writes_is_uploaded(trial, storage, prefix):
    storage.write(f"{prefix}/out/data/train/2/data.txt", [b"samples"])
    storage.write(f"{prefix}/out/train/1/index.pkl", [b"old model"])
    outcome = trial(
        """
        samples = Path(os.environ["TRAIN_DATASET_URL"]).read_text()
        old = Path(os.environ["CLOUD_KB_INDEX"]).read_text()
        (output / "index.pkl").write_text(f"{samples}, {old}")
        (output / "more").mkdir()
        (output / "more/notes.txt").write_text("notes")
        (output / "link").symlink_to("/etc/passwd")
        report([output / "index.pkl"], metrics={"accuracy": [0.5]})
        """,
        env={
            "TRAIN_DATASET_URL": "PREFIX/out/data/train/2/data.txt",
            "CLOUD_KB_INDEX": "PREFIX/out/train/1/index.pkl",
            "ORIGINAL_DATASET_URL": "PREFIX/data/all.csv",
        },
    ).succeeds()
    url = f"{prefix}/out/train/2/index.pkl"
    assert outcome.results == [{"format": "pkl", "url": url, "metrics": {"accuracy": [0.5]}}]
    found = objects(storage, f"{prefix}/out/train/2")
    assert found == {url: "samples, old model", f"{prefix}/out/train/2/more/notes.txt": "notes"}


def test_models_are_fetched_one_and_all(trial, storage, prefix):
    for name in "ab":
        storage.write(f"{prefix}/{name}.pkl", [name.encode()])
    outcome = trial(
        """
        read = [Path(path).read_text() for path in os.environ["MODEL_URLS"].split(";")]
        report([], owner_info={"read": read, "original": os.environ["ORIGINAL_DATASET_URL"]})
        """,
        env={"MODEL_URLS": "PREFIX/a.pkl;PREFIX/b.pkl", "ORIGINAL_DATASET_URL": "PREFIX/data/all.csv"},
    ).succeeds()
    assert outcome.owner_info == {"read": ["a", "b"], "original": f"{prefix}/data/all.csv"}


def test_objects_of_an_index_lie_where_samples_name_them(trial, storage, prefix):
    folder = f"{prefix}/out/data/train/2"
    storage.write(f"{folder}/data.txt", [b"imgs/0.jpg 0.5\nimgs/1.jpg ../x.jpg\n"])
    storage.write(
        f"{folder}/dataIndex.txt", [f"{prefix}/data/\nimgs/0.jpg\n0.5\nimgs/1.jpg\n../x.jpg\nimgs/1.jpg\n".encode()]
    )
    for number in range(2):
        storage.write(f"{prefix}/data/imgs/{number}.jpg", [f"image {number}".encode()])
    outcome = trial(
        """
        samples = Path(os.environ["TRAIN_DATASET_URL"])
        folder = Path(os.environ["ORIGINAL_DATASET_URL"]).parent
        assert folder == samples.parent
        read = [(folder / line.split()[0]).read_text() for line in samples.read_text().splitlines()]
        report([], owner_info={"read": read, "here": sorted(path.name for path in folder.iterdir())})
        """,
        env={
            "TRAIN_DATASET_URL": "PREFIX/out/data/train/2/data.txt",
            "ORIGINAL_DATASET_URL": "PREFIX/out/data/train/2/dataIndex.txt",
        },
    ).succeeds()
    assert outcome.owner_info == {"read": ["image 0", "image 1"], "here": ["data.txt", "dataIndex.txt", "imgs"]}


def test_a_program_fetches_what_its_order_does_not_name(trial, storage, prefix):
    storage.write(f"{prefix}/out/deploy/index.pkl", [b"deployed"])
    outcome = trial(
        """
        deployed = output.parent.parent / "deploy" / "index.pkl"
        found = [fetch(deployed), fetch(deployed), fetch(deployed.parent / "nothing"), fetch("/etc/hostname/x")]
        report([], owner_info={"found": found, "text": deployed.read_text()})
        """
    ).succeeds()
    assert outcome.owner_info == {"found": [True, True, False, False], "text": "deployed"}


def test_what_was_fetched_below_the_output_is_not_uploaded_again(trial, storage, proxy, prefix):
    storage.write(f"{prefix}/out/train/2/before.txt", [b"before"])
    storage.write(f"{prefix}/out/train/2/changed.txt", [b"before"])
    trial(
        """
        assert fetch(output / "before.txt") and fetch(output / "changed.txt")
        (output / "changed.txt").write_text("after")
        report([])
        """
    ).succeeds()
    assert [p.key.rpartition("/")[2] for p in proxy.passed if p.method == "PUT"] == ["changed.txt"]


def test_a_failed_program_uploads_nothing(trial, storage, prefix):
    error = trial("(output / 'index.pkl').write_text('half'); raise SystemExit(3)").fails()
    assert error == "the program exited with 3"
    assert objects(storage, prefix) == {}


def test_an_object_that_is_not_there_fails_the_run_and_is_named(trial, prefix):
    error = trial("report([])", env={"TRAIN_DATASET_URL": "PREFIX/nothing.csv"}).fails()
    assert f"cannot read {prefix}/nothing.csv" in error
    assert "no such object" in error


def test_an_object_whose_key_leads_out_of_the_folder_is_refused(trial):
    assert "leads out of" in trial("report([])", env={"TRAIN_DATASET_URL": "s3://bkt/a/../../../x"}).fails()


@pytest.mark.parametrize("status", [(403, "AccessDenied"), (404, "NoSuchBucket"), (400, "ExpiredToken")])
def test_what_needs_a_person_fails_the_run_with_its_reason(trial, proxy, storage, prefix, status):
    storage.write(f"{prefix}/x.csv", [b"1"])
    proxy.fail(Fault(*status))
    error = trial("report([])", env={"TRAIN_DATASET_URL": "PREFIX/x.csv"}).fails()
    assert status[1] in error
    assert "any-secret" not in error


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_what_passes_by_itself_is_waited_for(trial, proxy, storage, prefix, method):
    storage.write(f"{prefix}/x.csv", [b"1"])
    proxy.fail(Fault(503, "SlowDown"), lambda p: p.method == method, times=3)
    trial(
        "(output / 'index.pkl').write_text('model'); report([output / 'index.pkl'])",
        env={"TRAIN_DATASET_URL": "PREFIX/x.csv"},
    ).succeeds()
    assert objects(storage, f"{prefix}/out") == {f"{prefix}/out/train/2/index.pkl": "model"}


@pytest.mark.parametrize("reason", ["cancelled", "agent stops"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_run_that_waits_for_a_server_can_be_stopped(trial, proxy, prefix, method, reason):
    storage_at(proxy.upstream).write(f"{prefix}/x.csv", [b"1"])
    fault = proxy.fail(Fault(500, "InternalError"), lambda p: p.method == method)
    begun = trial(
        "(output / 'index.pkl').write_text('model'); report([output / 'index.pkl'])",
        env={"TRAIN_DATASET_URL": "PREFIX/x.csv"},
    ).start()
    eventually(lambda: any(p.method == method and p.status == fault.status for p in proxy.passed))
    begun.execution.stop(reason)
    outcome = begun.ended()
    assert (outcome is None) == (reason == "agent stops")


def test_a_run_takes_its_turn_only_while_its_program_runs(trial, proxy, storage, prefix, tmp_path):
    storage.write(f"{prefix}/x.csv", [b"1"])
    read = proxy.fail(Fault(stall=True), lambda p: p.method == "GET")
    turns = threading.Semaphore(1)
    assert turns.acquire(blocking=False)
    begun = trial(
        f"""
        import time
        while not Path("{tmp_path}/go").exists():
            time.sleep(0.01)
        (output / "index.pkl").write_text("model")
        report([])
        """,
        env={"TRAIN_DATASET_URL": "PREFIX/x.csv"},
        turns=turns,
        timeout=30,
    ).start()
    assert read.held.wait(10)
    assert not begun.execution.takes_turn
    proxy.heal()
    eventually(lambda: any((begun.run.work_folder / "objects").rglob("x.csv")))
    assert not begun.started.is_set()
    turns.release()
    assert begun.started.wait(10)
    assert begun.execution.takes_turn
    write = proxy.fail(Fault(stall=True), lambda p: p.method == "PUT")
    (tmp_path / "go").touch()
    assert write.held.wait(10)
    assert (begun.execution.takes_turn, begun.turns_over) == (False, 1)
    assert turns.acquire(blocking=False)
    proxy.heal()
    assert begun.ended().status == "completed"


def test_an_inference_program_gets_its_model_and_takes_no_turn(trial, storage, prefix):
    storage.write(f"{prefix}/out/deploy/index.pkl", [b"model"])
    outcome = trial(
        "print(Path(os.environ['MODEL_URLS']).read_text()); report([], owner_info={'ok': 1})",
        env={"MODEL_URLS": "PREFIX/out/deploy/index.pkl", "OUTPUT_URL": "PREFIX/out"},
        stage="Deploy",
    ).succeeds()
    assert outcome.owner_info == {"ok": 1}
    assert objects(storage, prefix) == {f"{prefix}/out/deploy/index.pkl": "model"}
