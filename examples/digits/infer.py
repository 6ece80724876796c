"""Inference: read all ten digits of the held-out images with the deployed model, again whenever it was replaced."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from digits import Samples, accuracy, read_model, split


def sentence(model_file: Path, held_out: Samples) -> str:
    """How well a model reads, said so that one sees which half of the digits it is blind to."""
    model = read_model(model_file)
    low, high = held_out[held_out.labels < 5], held_out[held_out.labels >= 5]
    return (
        f"reads {accuracy(model, held_out):.1%} of all ten digits"
        f" (0-4: {accuracy(model, low):.1%}, 5-9: {accuracy(model, high):.1%})"
    )


def main() -> None:
    """Say it once with --once; else stay, as Sedna's inference worker does, until a signal ends the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, default=os.environ.get("MODEL_URLS"), help="a model file")
    parser.add_argument("--once", action="store_true", help="read once and end")
    arguments = parser.parse_args()
    if arguments.model is None:
        parser.error("name a model file, or set MODEL_URLS")
    _, held_out = split()
    seen: tuple[int, int] | None = None
    while True:
        now = Path(arguments.model).stat()
        if seen != (now.st_ino, now.st_mtime_ns):
            seen = (now.st_ino, now.st_mtime_ns)
            print(sentence(Path(arguments.model), held_out), flush=True)
        if arguments.once:
            return
        time.sleep(1)


if __name__ == "__main__":
    main()
