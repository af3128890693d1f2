"""int4 weights, int8 biases, uint4 activations, int16 logits; every scale a power of two."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.artifacts import Arrays
from pipeline.graph.graph import Graph
from pipeline.models.network import Model
from pipeline.quantize.base import Quantizer
from pipeline.quantize.export import to_graph
from pipeline.quantize.parameters import from_arrays


@dataclass(frozen=True)
class Int4(Quantizer):
    """The published 2 KB format (Gural & Murmann 2019)."""

    def graph(self, name: str, model: Model, weights: Arrays, data: Arrays | None = None) -> Graph:
        """``weights`` bring their thresholds: ``data`` is not looked at."""
        return to_graph(name, from_arrays(model, weights), model.input_shape)
