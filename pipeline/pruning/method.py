"""What every pruning method answers."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

from pipeline.artifacts import Arrays
from pipeline.budget import UNITS

if TYPE_CHECKING:  # they import PyTorch, which takes a second
    from pipeline.models.network import Model
    from pipeline.training.environment import Run
    from pipeline.training.loop import Row as Epoch


@dataclass(frozen=True)
class Row:
    """One line of ``pruning.csv``: a layer's output channels and weights before and after."""

    layer: str
    channels_before: int
    channels_after: int
    weights_before: int
    weights_after: int


@dataclass(frozen=True)
class Pruned:
    """The content of ``pruned.npz``, a row for each layer that got smaller, what the network needed
    after each step that was planned (by the names of the limits), and the epochs of fine-tuning."""

    weights: Arrays
    rows: Sequence[Row]
    steps: Sequence[Mapping[str, float]] = ()
    epochs: Sequence[Epoch] = ()


class Pruning(ABC):
    """``changes`` is False for the method that leaves everything as it is."""

    changes: bool = True

    @abstractmethod
    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        """Smaller tensors under the same names, or the arrays of a smaller float network
        (``stored``); equal arguments give equal weights."""


def to_csv(rows: Sequence[Row]) -> str:
    """``pruning.csv``; only its header when nothing was pruned."""
    lines = (",".join(map(str, astuple(row))) for row in rows)
    return "\n".join([",".join(each.name for each in fields(Row)), *lines]) + "\n"


def steps_to_csv(steps: Sequence[Mapping[str, float]]) -> str:
    """``pruning_steps.csv``: the network as it came first, then after each step."""
    lines = [
        ",".join([str(n), *(f"{one[key]:.10g}" for key in UNITS)]) for n, one in enumerate(steps)
    ]
    return "\n".join([",".join(["step", *UNITS]), *lines]) + "\n"


def steps_of_csv(text: str) -> list[dict[str, float]]:
    """What each step in ``pruning_steps.csv`` needed, by the names of the limits."""
    rows = csv.DictReader(text.splitlines())
    return [{key: float(row[key]) for key in UNITS} for row in rows]
