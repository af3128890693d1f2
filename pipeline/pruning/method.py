"""Interface of every pruning method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.artifacts import Arrays
from pipeline.budget import UNITS

if TYPE_CHECKING:  # they import PyTorch, which takes a second
    from pipeline.models.network import Model
    from pipeline.training.environment import Run
    from pipeline.training.loop import Row as Epoch


@dataclass(frozen=True)
class Row:
    """A layer's output channels and weights before and after."""

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

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The content of ``pruning.json``: the layers that got smaller, what the network needed at
        first and after each step, and the epochs."""
        return {
            "layers": [asdict(row) for row in self.rows],
            "steps": [{key: float(one[key]) for key in UNITS} for one in self.steps],
            "epochs": [{**asdict(row), "loss": round(row.loss, 6)} for row in self.epochs],
        }


class Pruning(ABC):
    """``changes`` is False for the method that leaves everything as it is."""

    changes: ClassVar[bool] = True

    @abstractmethod
    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        """Smaller tensors under the same names, or the arrays of a smaller float network
        (``stored``); equal arguments give equal weights."""
