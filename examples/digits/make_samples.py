"""Append the samples of a round to a csv dataset, as a camera and somebody who labels its images would."""

from __future__ import annotations

import argparse
from pathlib import Path

from digits import HEADER, csv_rows, samples_of


def append_round(dataset: Path, round_number: int) -> int:
    """Append in one write, so that the local controller sees one batch; returns the number of samples."""
    rows = csv_rows(samples_of(round_number))
    dataset.parent.mkdir(parents=True, exist_ok=True)
    with dataset.open("ab", buffering=0) as file:
        header = [] if file.tell() else [",".join(HEADER) + "\n"]
        file.write("".join([*header, *rows]).encode())
    return len(rows)


def main() -> None:
    """Append the samples of `--round N` to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path, help="the csv file; made when it does not exist")
    parser.add_argument("--round", type=int, default=1, help="1: digits 0-4, 2: digits 5-9, 3 and more: all ten")
    arguments = parser.parse_args()
    if arguments.round < 1:
        parser.error("rounds are counted from 1")
    print(f"{append_round(arguments.dataset, arguments.round)} samples appended to {arguments.dataset}")


if __name__ == "__main__":
    main()
