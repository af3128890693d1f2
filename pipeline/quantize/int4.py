"""int4 weights, int8 biases, uint4 activations, int16 logits; every scale a power of two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from pipeline.artifacts import Arrays
from pipeline.datasets.noise import pictures
from pipeline.graph.graph import Graph
from pipeline.models.network import Model, loaded
from pipeline.quantize.base import Quantizer
from pipeline.quantize.export import to_graph
from pipeline.quantize.parameters import from_arrays
from pipeline.quantize.simulated import THRESHOLDS, QuantizedNetwork


@dataclass(frozen=True)
class Int4(Quantizer):
    """The published 2 KB format (Gural & Murmann 2019).

    Weights of a training that knows of it bring their thresholds. Others get those of least squared
    error on up to ``images`` training images, or pictures of nothing where there are none: with 4
    bits that costs accuracy, which training on (``train=quick``) wins back.
    """

    images: int = 2000

    def graph(self, name: str, model: Model, weights: Arrays, data: Arrays | None = None) -> Graph:
        if any(key.endswith(THRESHOLDS) for key in weights):
            network = from_arrays(model, weights)
        else:
            network = self._calibrated(model, weights, data or {})
        graph = to_graph(name, network, model.input_shape)
        image = graph.tensors[graph.input].spread(model.takes)
        return replace(graph, tensors={**graph.tensors, graph.input: image})

    def _calibrated(self, model: Model, weights: Arrays, data: Arrays) -> QuantizedNetwork:
        with torch.random.fork_rng(devices=[]):
            built = model.build()
        network = QuantizedNetwork(model.as_chain(loaded(built, weights)))
        images = data.get("train_images")
        if images is None or not len(images):
            images = pictures(max(2, self.images // 32), model.input_shape, 0)
        pixels = torch.from_numpy(images[: self.images]).permute(0, 3, 1, 2).float()
        with torch.no_grad():
            network.calibrate(network.pool(pixels.contiguous()))
        network.freeze()
        return network
