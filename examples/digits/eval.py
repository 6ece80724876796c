"""Eval: read the round's eval samples with the trained models and with the deployed one, and choose the best."""

from __future__ import annotations

import os
from pathlib import Path

from digits import accuracy, read_model, read_samples, write_whole

from lc_events.workers import fetch, report


def main() -> None:
    """Judge MODEL_URLS on TEST_DATASET_URL, write the choice to OUTPUT_URL/index.pkl, report it."""
    output, samples = Path(os.environ["OUTPUT_URL"]), read_samples(Path(os.environ["TEST_DATASET_URL"]))
    deployed = output.parent.parent / "deploy" / "index.pkl"
    candidates = [Path(url) for url in os.environ["MODEL_URLS"].split(";")]
    judged = [
        (accuracy(read_model(path), samples), path) for path in (*candidates, *([deployed] if fetch(deployed) else []))
    ]
    for reads, path in judged:
        print(f"{path} reads {reads:.1%} of {len(samples)} samples")
    reads, best = max(judged, key=lambda one: one[0])  # of equals the first: a trained one
    write_whole(output / "index.pkl", best.read_bytes())
    report([output / "index.pkl"], metrics={"accuracy": [reads]})


if __name__ == "__main__":
    main()
