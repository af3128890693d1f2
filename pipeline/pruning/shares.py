"""Share of a layer's weights that each of its channels has, and which units to keep by that."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipeline.importers import float_nodes as nodes
from pipeline.pruning.couplings import FIXED, Couplings, Mask

Scores = npt.NDArray[np.float64]


def strength(found: Couplings) -> Scores:
    """(units,): the L1 norm of the weights that make each (Li et al. 2017, "Pruning filters for
    efficient ConvNets") over the mean of its layer; of several layers, the mean."""
    total, count = np.zeros(found.units), np.zeros(found.units)
    for node in found.graph.nodes:
        if isinstance(node, nodes.Weighted):
            norms = np.abs(node.weights).reshape(len(node.weights), -1).sum(1)
            units = found.layers[node.name]
            np.add.at(total, units, norms / max(float(norms.mean()), 1e-30))
            np.add.at(count, units, 1)
    return total / np.maximum(count, 1)


def strongest(scores: Scores, units: Iterable[int], count: int) -> list[int]:
    """``count`` of ``units``, at least one; of equal ones the first."""
    return sorted(units, key=lambda unit: (-scores[unit], unit))[: max(1, count)]


def completed(found: Couplings, kept: Mask, scores: Scores) -> Mask:
    """``kept`` with what is fixed, and the strongest unit of each tensor that would have none."""
    kept = kept.copy()
    kept[FIXED] = True
    for units in found.together:
        if not kept[list(units)].any():
            kept[strongest(scores, set(units), 1)] = True
    return kept
