"""Pruning of any float network by channels: what all methods do around their choice of channels.

The network is imported as a float graph, which says what is tied to what; the method makes it
smaller until it keeps to the limits; then it is fine-tuned. Later stages get the smaller graph.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.datasets.dataset import seen
from pipeline.errors import ThimbleError
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_passes import simplified
from pipeline.importers.torch_export import exported
from pipeline.models.network import Model, loaded
from pipeline.pruning import stored
from pipeline.pruning.couplings import couplings
from pipeline.pruning.limited import Limited
from pipeline.pruning.method import Pruned, Row
from pipeline.pruning.work import Work
from pipeline.training.environment import Run, repeatable
from pipeline.training.examples import Examples
from pipeline.training.random_weights import RANDOM
from pipeline.training.recipe import ACCURACY_FLOAT


@dataclass(frozen=True)
class ChannelPruning(Limited):
    """Chooses channels, and trains the network without the others."""

    @abstractmethod
    def choose(self, network: FloatGraph, work: Work) -> FloatGraph:
        """Return the network without some of its channels; as small as it gets where limits cannot
        be kept."""

    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        if any(name.endswith(".weight_log2") for name in weights):
            raise ThimbleError(
                "prune: these weights were trained for quantize=int4, whose networks only "
                "prune=magnitude makes smaller; use train=float quantize=int8_qat"
            )
        module = loaded(model.build(), weights)
        floats = exported(type(model).__name__, module, model.examples, states=model.states)
        network = simplified(replace(floats, limits=model.takes))
        if not couplings(network).groups:
            raise ThimbleError(
                "prune: the network has no channels that can go: none lies between two layers "
                "with weights, or all are tied to its input or output"
            )
        if self.limits:
            self.planner.check(network, self.limits)
        with repeatable(run), Work.opened(self, model, seen(data), run, network) as work:
            small = self.choose(network, work)
            if not self.limits or self.over(work.ask(small)) <= 1:
                small = work.tuned(small)
            arrays = stored.to_arrays(small)
            if self.epochs and len(data.get("test_labels", ())):
                reached = work.accuracy(small, Examples.of(data, "test"))
                arrays[ACCURACY_FLOAT] = np.array(reached)
        if RANDOM.keys() <= weights.keys() and not work.epochs:
            arrays |= RANDOM
        return Pruned(arrays, rows(network, small), work.steps, work.epochs)


def rows(before: FloatGraph, after: FloatGraph) -> list[Row]:
    """Compare layers that have weights, before and after."""
    found = []
    for node, smaller in zip(before.nodes, after.nodes, strict=True):
        if isinstance(node, nodes.Weighted) and isinstance(smaller, nodes.Weighted):
            sizes = node.weights.size, smaller.weights.size
            found.append(Row(node.name, len(node.weights), len(smaller.weights), *sizes))
    return found
