"""What the programs of this example share: the images, a model file, and how well a model reads.

scikit-learn's digits are 1,797 handwritten digits (UCI, 1998), 8x8 pixels of 0 to 16. A fifth is held out for ever;
the rest becomes the samples of the rounds: first only 0-4, then only 5-9, then whatever is left of all ten.
"""

from __future__ import annotations

import csv
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

HEADER = [*(f"p{row}{column}" for row in range(8) for column in range(8)), "label"]
DIGITS = np.arange(10)
HELD_OUT = 360
FIRST_ROUNDS = 300
LATER_ROUNDS = 160

threadpool_limits(1)  # an edge node has better things to do, and one thread gives the same model every time


@dataclass(frozen=True)
class Samples:
    """Images as rows of 64 pixels from 0 to 16, and the digit that each shows."""

    images: NDArray[np.float64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: slice | NDArray[np.generic]) -> Samples:
        return Samples(self.images[which], self.labels[which])

    def __add__(self, other: Samples) -> Samples:
        return Samples(np.concatenate([self.images, other.images]), np.concatenate([self.labels, other.labels]))


def split() -> tuple[Samples, Samples]:
    """All images, cut once and always alike: those to learn from, and the held-out ones."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels, test_size=HELD_OUT, random_state=0, stratify=labels)
    return Samples(parts[0], parts[2]), Samples(parts[1], parts[3])


def samples_of(round_number: int) -> Samples:
    """The samples that arrive before training round 1, 2, 3 …; when all were given they come again."""
    pool, _ = split()
    low, high = pool[pool.labels < 5], pool[pool.labels >= 5]
    if round_number == 1:
        return low[:FIRST_ROUNDS]
    if round_number == 2:
        return high[:FIRST_ROUNDS]
    left = low[FIRST_ROUNDS:] + high[FIRST_ROUNDS:]
    left = left[np.random.default_rng(0).permutation(len(left))]
    start = (round_number - 3) * LATER_ROUNDS
    return left[np.arange(start, start + LATER_ROUNDS) % len(left)]


def csv_rows(samples: Samples) -> list[str]:
    """One line a sample: 64 pixels and the label."""
    return [
        ",".join(str(int(value)) for value in (*image, label)) + "\n"
        for image, label in zip(samples.images, samples.labels, strict=True)
    ]


def read_samples(path: Path) -> Samples:
    """Read a train or eval file; one without records, header or none, holds no samples."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row and row != HEADER]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(HEADER))
    return Samples(table[:, :-1], table[:, -1].astype(np.int64))


def new_model() -> MLPClassifier:
    """A small network that has read nothing yet."""
    return MLPClassifier(hidden_layer_sizes=(64,), learning_rate_init=0.003, random_state=0)


def teach(model: MLPClassifier, samples: Samples, *, epochs: int, seed: int) -> None:
    """Show the samples to the model again and again, in an order that depends on `seed` alone."""
    order = np.random.default_rng(seed)
    for _ in range(epochs):
        shuffled = samples[order.permutation(len(samples))]
        model.partial_fit(shuffled.images / 16, shuffled.labels, classes=DIGITS)


def accuracy(model: MLPClassifier, samples: Samples) -> float:
    """The share of the samples that the model reads right; 0 of none."""
    return float(model.score(samples.images / 16, samples.labels)) if len(samples) else 0.0


def read_model(path: Path) -> MLPClassifier:
    """Load a model; a pickle runs code, so only from a folder that the job's own programs write."""
    with path.open("rb") as file:
        model: MLPClassifier = pickle.load(file)
    return model


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under its name all at once: whoever reads meanwhile has the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
