"""int8, tuned: quantization-aware training of a float network whose ranges are calibrated."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import cross_entropy

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.lower import lower
from pipeline.quantize.int8 import Int8, as_input, resolvable
from pipeline.quantize.int8_rounded import Rounded
from pipeline.quantize.labels import threaded

SETTLING_IMAGES = 8
"""As many as the schedule's accumulators are calibrated on."""


@dataclass(frozen=True)
class Int8Qat(Int8):
    """Calibrated as Int8, then trained with cross-entropy and Adam; the epoch best on the
    validation images counts, or none where none is as good as what calibration gave.

    Attributes:
        epochs: of all ``examples``.
        rate: of Adam at first, falling to 0, as a share of each channel's greatest weight (whose
            127th part is the unit of int8), and of half the output's range for biases.
        batch: images a step.
        examples: training images that are trained on; 0 is all.
        seed: of the shuffling.
    """

    epochs: int = 3
    rate: float = 0.001
    batch: int = 64
    examples: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.epochs, self.batch) < 1 or self.examples < 0 or not self.rate > 0:
            raise ThimbleError(
                f"quantize.epochs={self.epochs} and quantize.batch={self.batch} must be at least "
                f"1, quantize.examples={self.examples} at least 0, quantize.rate={self.rate} "
                "above 0"
            )

    def from_float(self, network: FloatGraph, data: Arrays | None = None) -> Graph:
        train, validation = self.labelled(network, data)
        graph, affines = self.calibration(network, data)
        tuned, _ = self.tuned(graph, affines, train, validation)
        return lower(tuned, resolvable(tuned, affines))

    def labelled(self, network: FloatGraph, data: Arrays | None) -> tuple[Labelled, Labelled]:
        """Return what to train on, and to select by: the former where there are no validation
        images."""
        if network.states:
            raise ThimbleError(
                f"{network.name}: it keeps state from call to call, and quantize=int8_qat trains "
                "on images by themselves: choose quantize=int8"
            )
        held = data or {}
        train, validation = (
            Labelled(
                as_input(held[f"{part}_images"], network),
                held[f"{part}_labels"].astype(np.int64),
            )
            if len(held.get(f"{part}_labels", ())) else None
            for part in ("train", "validation")
        )  # fmt: skip
        if train is None:
            raise ThimbleError(
                f"{network.name}: quantize=int8_qat trains on labelled images, and the data set "
                "has none; choose another data, or quantize=int8"
            )
        shape, classes = network.shapes[network.output], int(train.labels.max()) + 1
        if prod(shape) != shape[-1] or shape[-1] < classes:
            raise ThimbleError(
                f"{network.name}: its output is {'x'.join(map(str, shape))}; quantize=int8_qat "
                f"needs a value for each of the data set's {classes} classes; choose quantize=int8"
            )
        if self.examples:
            train = train[: self.examples]
        return train, validation or train

    def tuned(
        self,
        graph: FloatGraph,
        affines: Mapping[str, Affine],
        train: Labelled,
        validation: Labelled,
    ) -> tuple[FloatGraph, list[float]]:
        """``graph`` with other weights and biases, and the mean loss of each epoch."""
        if not any(isinstance(node, nodes.Weighted) for node in graph.nodes):
            return graph, []
        with threaded(self.threads):
            return self._tuned(graph, self.simulated(graph, affines), train, validation)

    def simulated(self, graph: FloatGraph, affines: Mapping[str, Affine]) -> Rounded:
        """Return the network that is trained."""
        return Rounded(graph, affines)

    def _tuned(
        self, graph: FloatGraph, network: Rounded, train: Labelled, validation: Labelled
    ) -> tuple[FloatGraph, list[float]]:
        generator = torch.Generator().manual_seed(self.seed)
        optimizer = torch.optim.Adam(network.parameters(), self.rate)
        steps = self.epochs * -(-len(train) // self.batch)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        settling = train.spread(SETTLING_IMAGES).frames()
        network.settle(settling)
        best, greatest, losses = graph, validation.accuracy(network, self.batch), []
        for epoch in range(1, self.epochs + 1):
            total = 0.0
            for chosen in torch.split(torch.randperm(len(train), generator=generator), self.batch):
                part = train[chosen.numpy()]
                loss = cross_entropy(network(part.frames()), torch.from_numpy(part.labels))
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                falling.step()
                total += float(loss.detach()) * len(part)
            losses.append(total / len(train))
            if not math.isfinite(total):
                raise ThimbleError(
                    f"training diverged in epoch {epoch} of {self.epochs} (int8): the loss is "
                    f"{losses[-1]:g} at a learning rate of up to {self.rate:g}; lower quantize.rate"
                )
            network.settle(settling)
            reached = validation.accuracy(network, self.batch)
            print(
                f"epoch {epoch}/{self.epochs}, int8: loss {losses[-1]:.4f}, validation accuracy "
                f"{reached:.2%}", file=sys.stderr, flush=True,
            )  # fmt: skip
            if reached >= greatest:
                best, greatest = network.graph(), reached
        return best, losses


@dataclass(frozen=True)
class Labelled:
    """Images (n, *input shape) u8 with their labels (n,) int64."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice | npt.NDArray[np.int64]) -> Labelled:
        return Labelled(self.images[part], self.labels[part])

    def spread(self, number: int) -> Labelled:
        """Up to ``number`` of them, evenly spaced."""
        return self[np.unique(np.linspace(0, len(self) - 1, number).astype(np.int64))]

    def frames(self) -> torch.Tensor:
        return torch.from_numpy(self.images).float()

    @torch.no_grad()
    def accuracy(self, network: Rounded, batch: int) -> float:
        parts = [self[start : start + batch] for start in range(0, len(self), batch)]
        right = (network(part.frames()).argmax(1).numpy() == part.labels for part in parts)
        return sum(int(each.sum()) for each in right) / len(self)
