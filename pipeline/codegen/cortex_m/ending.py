"""Ends of a fast kernel's sums, as tables and C: see ``kernels/quick.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.constants import wrapped
from pipeline.codegen.int8.ending import Ending, ending
from pipeline.codegen.int8.job import Job
from pipeline.graph.families import Weighted
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.quick import Quick, channel_sums, quick_end


@dataclass(frozen=True)
class QuickText:
    """C of ``quick``, for a tensor."""

    quick: Quick
    target: Tensor

    @property
    def constants(self) -> IntArray:
        return self.quick.constants

    def requantized(self, twice: str, multiplier: object, offset: object, shift: object) -> str:
        """C of what is to be clipped; all are C expressions."""
        if self.quick.once:
            return f"nn_add_product((uint32_t){twice}, (uint32_t){multiplier}, {offset})"
        toward = twice if self.quick.signed else "0"
        return f"nn_requantized({twice}, {multiplier}, {offset}, {shift}, {toward})"

    def saturated(self, value: str) -> str:
        text = f"nn_saturated_{'us'[self.target.dtype.signed]}8({value})"
        text = f"nn_max({text}, {self.quick.low})" if self.quick.low is not None else text
        return f"nn_min({text}, {self.quick.high})" if self.quick.high is not None else text


@dataclass(frozen=True)
class End:
    """Beginning and end of a convolution's or a dense layer's sums.

    Attributes:
        starts: (channels,): what stored inputs, their zero point still in them, are added to.
        reach: (channels, 2): the least and greatest sum, 0 where it decides nothing.
    """

    starts: IntArray
    reach: IntArray
    quick: QuickText | None
    ending: Ending | None

    @property
    def words(self) -> int:
        """Count the words of a table row for two channels: two starts, then all constants."""
        return 8 if self.quick else 2

    def rows(self, groups: IntArray, packed: bool) -> IntArray:
        """(groups, channels) of channel numbers, pairs side by side -> words of the table."""
        starts = self.starts[groups]
        if packed:  # the second sum of a pair is 256 times itself, plus the first
            starts = starts.copy()
            starts[:, 1::2] = starts[:, 1::2] * 256 + starts[:, ::2]
        starts = wrapped(starts)
        if self.quick is None:
            return starts
        constants = self.quick.constants[groups].reshape(len(groups), -1)
        return np.concatenate([starts, constants], axis=1)


def end(job: Job) -> End:
    op, graph = job.operator(Weighted), job.program.graph
    weights, bias = (graph.constants[name] for name in op.parameters)
    flat = weights.reshape(len(weights), -1).astype(np.int64)
    less = flat.sum(axis=1) * graph.tensors[op.inputs[0]].zero_point
    sums, found = channel_sums(op, graph), quick_end(op, graph)
    if found is None:
        return End(-less, sums, None, ending(job.program, op))
    reach = np.where(found.constants[:, :1] != 0, sums + bias[:, None], 0)
    return End(bias - less, reach, QuickText(found, job.target), None)
