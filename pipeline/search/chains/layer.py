"""One operator of a chain, seen as units: pixels in, pixels out, all channels together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Operand, Window
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.tensor import Box, IntArray, Tensor
from pipeline.plan.reads import NEVER, read_times
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.bounds import ranges
from pipeline.schedules.traversed import Run

PixelBox = tuple[tuple[int, int], tuple[int, int]]
"""Ranges of rows and of columns."""


class Pixels(NamedTuple):
    """A tensor as a grid of pixels. A vector of n elements is one row of n pixels."""

    rows: int
    columns: int
    channels: int
    nibbles_per_element: int

    @classmethod
    def of(cls, tensor: Tensor) -> Pixels:
        height, width, channels = (1, tensor.size, 1) if len(tensor.shape) == 1 else tensor.shape
        return cls(height, width, channels, max(1, tensor.dtype.bits // 4))

    @property
    def number(self) -> int:
        return self.rows * self.columns

    @property
    def each(self) -> int:
        """Nibbles of a pixel: the paper's f, counted in nibbles instead of channels."""
        return self.channels * self.nibbles_per_element

    @property
    def total(self) -> int:
        return self.number * self.each

    @property
    def box(self) -> PixelBox:
        return (0, self.rows), (0, self.columns)


@dataclass(frozen=True)
class Layer:
    """``op`` turns the tensor ``source`` into ``target``; its unit is one pixel of ``target``."""

    op: Operator
    tensors: Tensors

    @property
    def source(self) -> Tensor:
        return self.tensors[self.op.inputs[0]]

    @property
    def target(self) -> Tensor:
        return self.tensors[self.op.output]

    @property
    def inputs(self) -> Pixels:
        return Pixels.of(self.source)

    @property
    def outputs(self) -> Pixels:
        return Pixels.of(self.target)

    @property
    def groups(self) -> int:
        """Channels of the input that share no output: then channels may be made one by one."""
        apart = self.op.depthwise(self.tensors) or (
            not self.op.weighted and self.op.channel_wise(self.tensors)
        )
        return self.inputs.channels if apart else 1

    @property
    def operands(self) -> tuple[Operand, ...]:
        """How the activation is read."""
        operands = (o for term in self.op.terms(self.tensors) for o in term.operands)
        return tuple(o for o in operands if o.tensor == self.source.name)

    @property
    def peelable(self) -> bool:
        """The paper's restricted case (section 3), where peeling a side of the output kills a side
        of the input: square kernel, stride 1, valid padding, and channels that grow."""
        windows = self.operands[0].windows[:2]
        side = windows[0].count
        return (
            windows == (Window(0, side), Window(1, side))
            and side > 1
            and self.target.shape[:2] == tuple(n - side + 1 for n in self.source.shape[:2])
            and self.outputs.each > self.inputs.each
        )

    def last_use(self, rank: IntArray) -> IntArray:
        """When each input pixel is read last; NEVER (-1) where it is not read at all.

        ``rank`` (h', w') numbers the outputs in the order they are computed. -> (h, w).
        """
        times = rank if len(self.target.shape) == 3 else rank[0]
        box = tuple((0, extent) for extent in times.shape)
        axes = 2 if len(self.source.shape) == 3 else 1
        grid = [np.arange(extent) for extent in self.source.shape[:axes]]
        last = np.full([len(index) for index in grid], NEVER, dtype=np.int64)
        for operand in self.operands:
            spatial = Operand(operand.tensor, operand.windows[:axes])
            last = np.maximum(last, read_times(spatial, box, times, grid, last=True))
        return last.reshape(self.inputs.rows, self.inputs.columns)

    def run(
        self,
        source: Buffer,
        target: Buffer,
        box: PixelBox,
        order: Iterable[tuple[int, int]] = (),
    ) -> Run:
        """Compute the pixels of ``box``, in ``order`` (relative to it; empty: row-major)."""
        image = len(self.target.shape) == 3
        out: Box = (*box, (0, self.outputs.channels)) if image else box[1:]
        places = tuple((y, x, 0) if image else (x,) for y, x in order)
        return Run(self.op, (source,), target, ranges(out), places)
