"""Write the histories that are made by hand, if they are not there, and the states of all with --states."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from support.given import STREAM, arrive, confirmed, deleted, failed, repeated, written  # noqa: E402
from support.histories import read_history, states_of  # noqa: E402
from support.rounds import Rounds  # noqa: E402
from support.sedna import condition, output  # noqa: E402
from support.stores import stored  # noqa: E402

from lc_events.application.audit.archive import Archive  # noqa: E402
from lc_events.application.audit.controller import CONTROLLER  # noqa: E402
from lc_events.application.audit.exports import export_lines  # noqa: E402
from lc_events.application.journal import open_journal  # noqa: E402

NIGHT = {
    "timer": {"start": "22:00", "end": "05:00"},
    "condition": {"operator": "ge", "threshold": "4", "metric": "num_of_samples"},
}


def lives() -> Rounds:
    rounds = Rounds(zone="Europe/Berlin", uid="u1").ticked().arrive(3).then(repeated("m-0")).arrive(6)
    rounds.wait().then(failed("no_space", "no space left", now=rounds.time)).trained()
    del rounds.conditions[:-3]
    rounds.then(confirmed(1, 2, 3, 9, 10, 11, 12)).arrive(5).trained().then(repeated(None, worker="w1"))
    rounds.wait().then(arrive(4, header="a,b", epoch=2, url="/data/other.csv", at=rounds.facts)).ticked()
    rounds.then(deleted("m-gone")).then(deleted())
    rounds.conditions.clear()
    rounds._job = {"uid": "u2", "trigger": NIGHT, "train_prob": 0.29}
    return (
        rounds.told("Train/Waiting", operation="insert").arrive(40).wait(24 * 60).ticked().trained(minutes=600).ticked()
    )


def adopted() -> Rounds:
    rounds = Rounds()
    rounds.commands.clear()
    ready = {"input": {"dataURL": "/output/job1/data/train/4/data.txt", "outputDir": "/output/job1/train/4"}}
    rounds.conditions = [
        condition("Train", "Ready", "t1", ready),
        condition("Train", "Completed", "t2", output("/output/job1/train/4/model.pkl")),
    ]
    rounds.told("Eval/Waiting", operation="insert", urls=())
    return rounds.wait().then(written(rounds.time)).arrive(20).told("Train/Waiting").arrive(9).trained()


def rules_1() -> Rounds:
    """Models that counted at Eval by rules 1: encoded `..` below the outputDir, and URLs that no server would take."""
    climbing, endless = "s3://bkt/out/%2e%2e/m.pkl", f"s3://bkt/out/{'a' * 4096}/m.pkl"
    rounds = Rounds(rules=1, output_dir="s3://bkt/out").arrive(9)
    rounds.wait().then(written(rounds.time))
    rounds.told("Train/Completed", "Eval/Waiting", urls=("s3://bkt/out/../m.pkl",)).ticked().arrive(1)
    rounds.told("Train/Completed", "Eval/Waiting", urls=(climbing, "s3://other/m.pkl", endless))
    rounds.wait().then(written(rounds.time)).told("Eval/Completed", "Deploy/Waiting", urls=(climbing,))
    words = f"{climbing}: does not lie below s3://bkt/out"
    rounds.wait().then(failed("outside", words, final=True, now=rounds.time)).told("Deploy/Failed", "Train/Waiting")
    rounds.open_places("s3://models").arrive(9).ticked().wait().then(written(rounds.time))
    rounds.told("Train/Completed", "Eval/Waiting", urls=("s3://models/a/%252e%252e/m.pkl",)).ticked()
    return rounds.told("Train/Completed", "Eval/Waiting", urls=(f"s3://models/{'%25' * 2000}/m.pkl", climbing))


def main() -> None:
    for name, rounds in {"lives": lives(), "adopted": adopted(), "rules-1": rules_1()}.items():
        path = HERE / f"{name}.jsonl"
        if not path.exists():
            with TemporaryDirectory() as folder:
                store = stored(Path(folder, "events.db"), rounds.history().events)
                archive = Archive(open_journal(store, CONTROLLER.registry), CONTROLLER, "edge1")
                path.write_bytes(b"".join(line + b"\n" for line in export_lines("edge1", archive.rows(STREAM))))
                archive.journal.close()
    if "--states" in sys.argv:
        for path in HERE.glob("*.jsonl"):
            states = states_of(read_history(path))
            path.with_suffix(".states.json").write_text(json.dumps(states, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
