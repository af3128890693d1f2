"""int8 after training: per-channel symmetric weights, affine activations, int32 biases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from pipeline.artifacts import Arrays
from pipeline.axes import advice, fits, times
from pipeline.datasets.noise import for_inputs
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.float_passes import rebuilt, simplified, without
from pipeline.importers.lower import lower
from pipeline.importers.onnx_front import without_idle
from pipeline.importers.quantizations import quantizations
from pipeline.importers.scales import ABOVE, PIXEL, weight_steps
from pipeline.importers.torch_export import exported
from pipeline.models.network import Model, loaded
from pipeline.quantize.base import Quantizer
from pipeline.quantize.errors import Row, errors
from pipeline.quantize.int8_bias import corrected
from pipeline.quantize.int8_ranges import OBSERVERS, calibrated
from pipeline.quantize.labels import labels, threaded

Observer = Literal["mse", "percentile", "minmax"]

BATCH_ELEMENTS = 1 << 20
"""Input elements calibrated at a time."""

MOST_VALUES = 1 << 20
"""Values of all random pictures together: where there are no data, accuracy is not the question."""


COMPARED_MACS, MOST_COMPARED = 1_000_000_000, 16
"""Work, and most images, for the error of each tensor; at least one image."""


@dataclass(frozen=True)
class Int8(Quantizer):
    """Ranges are observed on ``images`` training images, and biases corrected; where there are
    none, ranges are observed on up to as many random pictures.

    Attributes:
        observer: ``mse`` (least squared error), ``percentile`` or ``minmax``.
        percentile: percent of the values inside the range, for that observer.
        seed: seed of the random pictures.
        threads: threads that PyTorch uses for an operator; they decide the last bits of sums.
    """

    images: int = 256
    observer: Observer = "mse"
    percentile: float = 99.99
    seed: int = 0
    threads: int = 2

    def __post_init__(self) -> None:
        if self.observer not in OBSERVERS:
            raise ThimbleError(
                f"quantize.observer={self.observer} is unknown; there are {', '.join(OBSERVERS)}"
            )
        if self.images < 1 or self.threads < 1 or not 50 < self.percentile <= 100:
            raise ThimbleError(
                f"quantize.images={self.images} and quantize.threads={self.threads} must be at "
                f"least 1, quantize.percentile={self.percentile} in 50…100"
            )

    def graph(self, name: str, model: Model, weights: Arrays, data: Arrays | None = None) -> Graph:
        return self.from_float(_floats(name, model, weights), data)

    def from_float(self, network: FloatGraph, data: Arrays | None = None) -> Graph:
        if not network.given:
            return lower(*self.calibration(network, data))
        graph = without_idle(simplified(network))
        known = quantizations(graph, guessed=False)
        if known.keys() < graph.shapes.keys():
            entries = {name: known[name] for name in graph.inputs}
            known = {**self.observed(graph, self.frames(graph, data), entries), **known}
        return lower(graph, known)

    def errors(
        self, network: Model | FloatGraph, weights: Arrays, graph: Graph, data: Arrays
    ) -> list[Row]:
        if not isinstance(network, FloatGraph):
            network = _floats(graph.name, network, weights)
        plain = simplified(network)
        plain = without_idle(plain) if network.given else absorbed(plain)[0]
        count = max(1, min(MOST_COMPARED, COMPARED_MACS // max(1, graph.macs)))
        frames = replace(self, images=count).frames(plain, data).astype(np.int64) - 128
        with threaded(self.threads):
            return errors(plain, graph, np.split(frames, 1 if plain.states else len(frames)))

    def float_labels(
        self, network: Model | FloatGraph, weights: Arrays, images: npt.NDArray[np.uint8], macs: int
    ) -> npt.NDArray[np.int64]:
        if isinstance(network, Model) and (network.step or network.states):
            network = _floats("net", network, weights)
        if isinstance(network, FloatGraph):
            images = images if len(network.outputs) == 1 else images[:0]
            return labels(network.evaluate, images, macs, self.threads, bool(network.states))
        module = loaded(network.build(), weights).eval()
        return labels(lambda x: module(x.permute(0, 3, 1, 2)), images, macs, self.threads)

    def calibration(
        self, network: FloatGraph, data: Arrays | None
    ) -> tuple[FloatGraph, dict[str, Affine]]:
        """Return what is lowered: the simplified graph, and a quantization for each activation."""
        graph = simplified(network)
        frames = self.frames(graph, data)
        graph, entries = absorbed(graph)
        affines = self.observed(graph, frames, entries)
        if has_images(data):
            with threaded(self.threads):
                graph = corrected(graph, affines, partial(batches, graph, frames, entries))
        return graph, affines

    def observed(
        self, graph: FloatGraph, frames: npt.NDArray[np.uint8], entries: Mapping[str, Affine]
    ) -> dict[str, Affine]:
        """Return a quantization for each activation, of ``frames`` that are stored by ``entries``,
        the inputs'."""
        given = partial(batches, graph, frames, entries)
        with threaded(self.threads):
            found = calibrated(graph, given, entries, self.observer, self.percentile)
        return resolvable(graph, found)

    def frames(self, graph: FloatGraph, data: Arrays | None) -> npt.NDArray[np.uint8]:
        """(n, *input shape) u8, of several inputs (n, elements), evenly spaced over the training
        images; where the network keeps state, the first ones, which follow each other."""
        shapes = [graph.shapes[name] for name in graph.inputs]
        found = (data or {}).get("train_images", np.zeros(0))
        if not has_images(data):
            count = max(4, min(self.images, MOST_VALUES // sum(map(prod, shapes))))
            found = for_inputs(count, shapes, self.seed)
        last = min(len(found), self.images) if graph.states else len(found)
        chosen = np.unique(np.linspace(0, last - 1, self.images).astype(np.int64))
        return as_input(np.asarray(found[chosen], np.uint8), graph)


def _floats(name: str, model: Model, weights: Arrays) -> FloatGraph:
    module = loaded(model.build(), weights)
    floats = exported(name, module, model.examples, model.step, model.states)
    return replace(floats, limits=model.takes)


def batches(
    graph: FloatGraph, frames: npt.NDArray[np.uint8], entries: Mapping[str, Affine]
) -> Iterator[torch.Tensor]:
    """Yield what the stored integers of ``frames`` stand for, the inputs' by ``entries``."""
    size = len(frames) if graph.states else max(1, BATCH_ELEMENTS // frames[0].size)
    sizes = torch.tensor([prod(graph.shapes[name]) for name in graph.inputs])
    each = [(entries[name].scale, entries[name].zero_point) for name in graph.inputs]
    scale, zero = (torch.tensor(of).repeat_interleave(sizes) for of in zip(*each, strict=True))
    for start in range(0, len(frames), size):
        raw = torch.from_numpy(frames[start : start + size].astype(np.float32))
        real = scale * (raw.reshape(len(raw), -1) - 128 - zero)
        yield real.reshape(raw.shape)


def as_input(images: npt.NDArray[np.uint8], graph: FloatGraph) -> npt.NDArray[np.uint8]:
    """(n, h, w, c) -> (n, *input shape). Raises ThimbleError for other axes than the input's."""
    shapes = [graph.shapes[name] for name in graph.inputs]
    shape = shapes[0] if len(shapes) == 1 else (sum(map(prod, shapes)),)
    if not fits(images.shape[1:], shape):
        mend = advice(images.shape[1:], shape) or "choose another data or model.input_shape"
        raise ThimbleError(
            f"the data set has images of {times(images.shape[1:])}, {graph.name} "
            f"takes {times(shape)}: {mend}"
        )
    return images.reshape(-1, *shape)


def has_images(data: Arrays | None) -> bool:
    return len((data or {}).get("train_images", ())) > 0


def absorbed(graph: FloatGraph) -> tuple[FloatGraph, dict[str, Affine]]:
    """Return a scaling of a raw input, such as x / 255, taken into the input's quantization.

    The real zero has to be one of the 256 values (to half a step): padding needs it.
    """
    entries = dict[str, Affine]()
    for name in graph.inputs:
        graph, entries[name] = _absorbed(graph, name)
    return graph, entries


def _absorbed(graph: FloatGraph, source: str) -> tuple[FloatGraph, Affine]:
    readers = graph.readers(source)
    first = readers[0] if len(readers) == 1 else None
    if not isinstance(first, nodes.Function) or len(first.body.steps) != 1 or first.clip:
        return graph, PIXEL
    step = first.body.steps[0]
    if step.function != "affine" or step.constants[0] <= 0 or first.output in graph.ends:
        return graph, PIXEL
    factor, offset = step.constants
    zero_point = round(-128 - offset / factor)
    if not -128 <= zero_point <= 127:
        return graph, PIXEL
    return rebuilt(graph, without(graph, first)), Affine(factor, zero_point)


def resolvable(graph: FloatGraph, affines: dict[str, Affine]) -> dict[str, Affine]:
    """Output scales above the step of the sums they come from: nothing finer is there, and factors
    below 1 need no shift to the left, which fast kernels don't have."""
    result = dict(affines)
    for node in graph.nodes:
        if not isinstance(node, nodes.Weighted):
            continue
        scale = result[node.inputs[0]].scale
        finest = ABOVE * scale * float(weight_steps(node.weights, node.bias, scale).max())
        found = result[node.output]
        if found.scale < finest:
            group = [name for name, affine in affines.items() if affine == found]
            coarser = Affine(finest, int(np.clip(found.zero_point, -128, 127)))
            result |= dict.fromkeys(group, coarser)
    return result
