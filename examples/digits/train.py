"""Train: go on from the job's previous model with the round's new samples, and rehearse some of the old ones."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
from digits import Samples, accuracy, new_model, read_model, read_samples, teach, write_whole

from lc_events.workers import fetch, report

EPOCHS = int(os.environ.get("EPOCHS", "60"))
REHEARSED = int(os.environ.get("REHEARSED", "1000"))


def previous_model(output: Path) -> Path | None:
    """What the job knows already: Sedna names the last trained model in CLOUD_KB_INDEX; else the deployed one."""
    if os.environ.get("HAS_COMPLETED_INITIAL_TRAINING", "false").lower() != "true":
        return None
    candidates = [Path(os.environ.get("CLOUD_KB_INDEX", "")), output.parent.parent / "deploy" / "index.pkl"]
    return next((path for path in candidates if fetch(path)), None)


def remembered(train_file: Path) -> list[Path]:
    """The train files of earlier rounds, `data/train/ROUND/data.csv`, oldest first; fetched if they are objects."""
    this_round = train_file.parent.name
    rounds = range(1, int(this_round)) if this_round.isdecimal() else ()
    earlier = [train_file.parent.parent / str(number) / train_file.name for number in rounds]
    return [path for path in earlier if fetch(path)]


def main() -> None:
    """Read TRAIN_DATASET_URL, write OUTPUT_URL/index.pkl, report it."""
    train_file, output = Path(os.environ["TRAIN_DATASET_URL"]), Path(os.environ["OUTPUT_URL"])
    samples = read_samples(train_file)
    lesson, seed = samples, len(samples)
    previous = previous_model(output)
    if previous:
        old = sum((read_samples(path) for path in remembered(train_file)), start=samples[:0])
        lesson = samples + rehearsal(old, seed)
    model = read_model(previous) if previous else new_model()
    teach(model, lesson, epochs=EPOCHS, seed=seed)
    write_whole(output / "index.pkl", pickle.dumps(model))
    reads = accuracy(model, samples)
    print(f"learned {len(samples)} new and {len(lesson) - len(samples)} old samples, from {previous or 'nothing'}")
    report([output / "index.pkl"], metrics={"accuracy": [reads]})


def rehearsal(old: Samples, seed: int) -> Samples:
    """At most REHEARSED of the old samples: without them a network forgets what it learned first."""
    return old[np.random.default_rng(seed).permutation(len(old))[:REHEARSED]]


if __name__ == "__main__":
    main()
