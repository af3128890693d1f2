"""Ends of a fast kernel's sums, as tables and C: see ``kernels/quick.py``."""

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.constants import wrapped
from pipeline.codegen.int8.ending import Ending, ending
from pipeline.codegen.int8.job import Job
from pipeline.graph.families import Weighted
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.quick import Quick, channel_sums, quick_end


def stored(
    quick: Quick, target: Tensor, twice: str, multiplier: object, offset: object, shift: object
) -> str:
    """C of what ``target`` stores of a sum; all of the latter are C expressions."""
    toward = twice if quick.signed else "0"
    value = f"nn_requantized({twice}, {multiplier}, {offset}, {shift}, {toward})"
    if quick.once:
        value = f"nn_add_product((uint32_t){twice}, (uint32_t){multiplier}, {offset})"
    text = f"nn_saturated_{'us'[target.dtype.signed]}8({value})"
    text = f"nn_max({text}, {quick.low})" if quick.low is not None else text
    return f"nn_min({text}, {quick.high})" if quick.high is not None else text


@dataclass(frozen=True)
class End:
    """Beginning and end of a convolution's or a dense layer's sums.

    Attributes:
        starts: (channels,): what stored inputs, their zero point still in them, are added to.
        reach: (channels, 2): the least and greatest sum, 0 where it decides nothing.
    """

    starts: IntArray
    reach: IntArray
    target: Tensor
    quick: Quick | None
    ending: Ending | None = None

    def stored(
        self, type_: str, place: str, total: str, twice: str, at: int | tuple[str, ...],
        channel: str,
    ) -> str:  # fmt: skip
        """C that stores a complete sum of ``type_``. All but ``at`` are C: where the channel's
        constants begin in q, or what they are."""
        if self.quick:
            constants = [f"q[{at + n}]" for n in range(3)] if isinstance(at, int) else at
            return f"{place} = ({type_}){stored(self.quick, self.target, twice, *constants)};"
        assert self.ending is not None
        value, kept = self.ending.scaled(total, channel), self.ending.stored("value")
        return f"{{ const int32_t value = {value}; {place} = ({type_})({kept}); }}"

    @property
    def factor(self) -> int:
        """Return how many times sums are had that quick ends take twice."""
        return 2 if self.quick else 1

    def heads(self, starts: IntArray, groups: IntArray | slice = slice(None)) -> IntArray:
        """(groups, words) of a table: what sums begin with, then all constants of the channels."""
        constants = [self.quick.constants[groups].reshape(len(starts), -1)] if self.quick else []
        return np.concatenate([wrapped(starts), *constants], axis=1)

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
        return self.heads(starts, groups)


def end(job: Job) -> End:
    op, graph = job.operator(Weighted), job.program.graph
    weights, bias = (graph.constants[name] for name in op.parameters)
    flat = weights.reshape(len(weights), -1).astype(np.int64)
    less = flat.sum(axis=1) * graph.tensors[op.inputs[0]].zero_point
    sums, found = channel_sums(op, graph), quick_end(op, graph)
    if found is None:
        return End(-less, sums, job.target, None, ending(job.program, op))
    reach = np.where(found.constants[:, :1] != 0, sums + bias[:, None], 0)
    return End(bias - less, reach, job.target, found)
