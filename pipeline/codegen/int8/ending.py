"""Ends of an operator's sums: requantization, the fused activation and the zero point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.int8.requantize import Scaling, scaling, stored
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.families import Pairwise, Weighted
from pipeline.graph.operator import Operator, limits
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import INT32, FixedPoint, Mean, PowerOfTwo

Range = tuple[int, int]


@dataclass(frozen=True)
class Ending:
    """A complete sum as its tensor stores it.

    Attributes:
        scaling: a C expression with places for the sum and its channel.
        limits: stored integers let through; ``zero_point``: added last.
        counted: the sum is of stored integers and is divided by how many they are.
        reached: the least and greatest that ``scaled`` gives, as far as that is known.
    """

    scaling: Scaling
    limits: tuple[int, int]
    zero_point: int = 0
    counted: bool = False
    reached: Range = INT32

    @property
    def per_channel(self) -> bool:
        return self.scaling.per_channel

    def scaled(self, total: str, channel: str = "0") -> str:
        return self.scaling(total, channel)

    def stored(self, value: str) -> str:
        """Return C that stores what ``scaled`` gave, as the tensor has it."""
        return stored(value, self.limits, self.zero_point, self.reached)


def ending(program: Program, op: Operator, held: Range = (0, 0)) -> Ending:
    """
    Args:
        held: the least and greatest sum that accumulators may stand for, where they are rounded.

    Raises:
        ThimbleError: for operators without sums: nothing of theirs is ever incomplete.
    """
    exact = op.partial_sums(program.graph.tensors, program.graph.constants)
    sums = min(exact[0], held[0]), max(exact[1], held[1])
    target, bias, reached = program.graph.tensors[op.output], None, INT32
    match op:
        case Weighted(requant=requant):
            bias = program.graph.constants[op.parameters[1]]
        case AveragePool2d(requant=Mean()):
            mean = Scaling("nn_mean({sum}, count)", False)
            return Ending(mean, limits(target, op.clip), counted=True)
        case MaxPool2d():
            ends = program.graph.tensors[op.inputs[0]].dtype
            ends_of = Scaling("{sum}", False)
            return Ending(ends_of, limits(target, op.clip), reached=(ends.minimum, ends.maximum))
        case AveragePool2d(requant=FixedPoint() | PowerOfTwo() as requant):
            least, most = map(int, requant.apply(np.array(sums)))
            reached = least, most
        case Pairwise(requant=requant):
            pass
        case _:
            raise ThimbleError(f"{op.name}: {type(op).__name__} has no partial results")
    scaled = scaling(program.constants, op.name, requant, sums, bias)
    return Ending(scaled, limits(target, op.clip), target.zero_point, reached=reached)
