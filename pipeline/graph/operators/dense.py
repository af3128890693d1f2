"""Fully connected layer: every output reads the whole input, whatever its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Weighted, products
from pipeline.graph.operator import BoxValues, Clip, Tensors
from pipeline.graph.requant import PowerOfTwo, Requant
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Dense(Weighted):
    """(input shape) * (c_out, input shape) -> (c_out,). ``parameters`` are (weights, bias)."""

    channel_axis: ClassVar[int] = 0

    clip: Clip = None
    requant: Requant = PowerOfTwo()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape, weights = tensors[self.inputs[0]].shape, tensors[self.parameters[0]].shape
        if weights[1:] != shape:
            raise ThimbleError(f"{self.name}: weights for {weights[1:]}, but the input is {shape}")
        return weights[:1]

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        whole = tuple(Window(None, extent) for extent in tensors[self.inputs[0]].shape)
        return (
            Term(
                (Operand(self.inputs[0], whole), Operand(self.parameters[0], (Window(0), *whole)))
            ),
        )

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        x, w = self.centred(tensors, out, regions)
        count = tensors[self.output].size
        return products(x.reshape(len(x), -1), w.reshape(len(w), -1), out[0], count)
