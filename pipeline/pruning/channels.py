"""Pruning of any float network by channels: what all methods do around their choice of channels.

The network is imported as a float graph, which says what is tied to what; the method makes it
smaller until it keeps to the limits; then it is fine-tuned. Later stages get the smaller graph.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.budget import limits, times_over
from pipeline.datasets.dataset import seen
from pipeline.errors import ThimbleError
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_passes import simplified
from pipeline.importers.torch_export import exported
from pipeline.models.network import Model, loaded
from pipeline.pruning import stored
from pipeline.pruning.couplings import couplings
from pipeline.pruning.method import Pruned, Pruning, Row
from pipeline.pruning.planner import Needs, Planner
from pipeline.pruning.work import Work
from pipeline.training.augment import Distorting
from pipeline.training.environment import Run, repeatable
from pipeline.training.examples import Examples
from pipeline.training.random_weights import RANDOM
from pipeline.training.recipe import ACCURACY_FLOAT


@dataclass(frozen=True)
class ChannelPruning(Distorting, Pruning):
    """
    Attributes:
        pmu_bytes, weight_bytes, macs, latency_us: what the network may need at most, 0 for no
            limit, by the plan of ``strategy`` for ``hardware``.
        epochs: of fine-tuning, and of what a method trains before; the epoch best on the validation
            images counts.
        rate: up to which the learning rate rises; 0 is 0.05.
        batch, momentum, decay, images: as in ``pipeline.training.float_only``.
        label_share: of the loss; the rest is learned from the network before it was pruned, at
            ``temperature``.
        strategy, hardware, passes: those of the rest of the config.
    """

    pmu_bytes: int = 0
    weight_bytes: int = 0
    macs: int = 0
    latency_us: float = 0.0
    epochs: int = 8
    rate: float = 0.0
    batch: int = 128
    momentum: float = 0.9
    decay: float = 5e-4
    images: int = 0
    label_share: float = 1.0
    temperature: float = 2.0
    strategy: Mapping[str, Any] = field(default_factory=dict)
    hardware: Mapping[str, Any] = field(default_factory=dict)
    passes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.limits  # noqa: B018 - refuses negative ones
        if self.epochs < 0 or self.batch < 1 or self.images < 0 or self.rate < 0:
            raise ThimbleError(
                f"prune.epochs={self.epochs}, prune.images={self.images} and prune.rate="
                f"{self.rate:g} must be at least 0, prune.batch={self.batch} at least 1"
            )
        if not 0 <= self.label_share <= 1 or self.temperature <= 0:
            raise ThimbleError(
                f"prune.label_share={self.label_share:g} must be between 0 and 1, "
                f"prune.temperature={self.temperature:g} above 0"
            )

    @cached_property
    def limits(self) -> dict[str, float]:
        return limits(vars(self))

    @cached_property
    def planner(self) -> Planner:
        return Planner.of(self.strategy, self.hardware, self.passes)

    def over(self, needs: Needs) -> float:
        """By what factor the worst limit is exceeded."""
        return times_over(needs.amounts, self.limits)

    @abstractmethod
    def choose(self, network: FloatGraph, work: Work) -> FloatGraph:
        """The network without some of its channels; as small as it gets where limits cannot be
        kept."""

    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        if any(name.endswith(".weight_log2") for name in weights):
            raise ThimbleError(
                "prune: these weights were trained for quantize=int4, whose networks only "
                "prune=magnitude makes smaller; use train=float quantize=int8_qat"
            )
        module = loaded(model.build(), weights)
        floats = exported(type(model).__name__, module, model.example())
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
    """Of each layer with weights."""
    found = []
    for node, smaller in zip(before.nodes, after.nodes, strict=True):
        if isinstance(node, nodes.Weighted) and isinstance(smaller, nodes.Weighted):
            sizes = node.weights.size, smaller.weights.size
            found.append(Row(node.name, len(node.weights), len(smaller.weights), *sizes))
    return found
