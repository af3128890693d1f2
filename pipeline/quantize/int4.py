"""int4 weights, int8 biases, uint4 activations, int16 logits; every scale a power of two."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.artifacts import Arrays
from pipeline.graph.graph import Graph
from pipeline.models.network import Model
from pipeline.quantize.export import to_graph
from pipeline.quantize.parameters import from_arrays


@dataclass(frozen=True)
class Int4:
    """The published 2 KB format (Gural & Murmann 2019)."""

    def graph(self, name: str, model: Model, arrays: Arrays) -> Graph:
        """The integer graph of the parameters in ``arrays``.

        Raises:
            ThimbleError: parameters of another model, or sums that the format cannot hold.
        """
        return to_graph(name, from_arrays(model, arrays), model.input_shape)
