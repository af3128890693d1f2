"""No pruning: the default."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.artifacts import Arrays
from pipeline.models.network import Model
from pipeline.pruning.method import Pruned, Pruning
from pipeline.training.environment import Run


@dataclass(frozen=True)
class NoPruning(Pruning):
    """Nothing is pruned."""

    changes: ClassVar[bool] = False

    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        return Pruned(weights, [])
