"""How well a training did, by its images for validation alone."""

from __future__ import annotations

import csv
from pathlib import Path

from pipeline.artifacts import read_npz
from pipeline.metrics import SCORE

SEARCH = "search.json"
"""In the folder of a search: of each network drawn its ``overrides``, the ``bytes`` of activations
of each strategy that fits, what ``validation`` gave after each of its ``rungs``, and whether it
``survives``; the names of all ``strategies``."""


def validation(folder: Path) -> float:
    """The accuracy, of 1, that a run's training handed on: the best of its last phase, or where the
    recipe chose by more than the validation images, such as distorted copies of them, by that; -1
    where it came to no end."""
    file = folder / "training.csv"
    rows = list(csv.DictReader(file.read_text().splitlines())) if file.is_file() else []
    if not rows:
        return -1.0
    weights = read_npz(folder / "weights.npz")
    if SCORE in weights:
        return float(weights[SCORE])
    last = [row for row in rows if row["phase"] == rows[-1]["phase"]]
    return max(float(row["validation_accuracy"]) for row in last)
