"""What sums begin with and how they end, as words of tables: see ``kernels/thumb/ending.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.cortex_m.ending import wrapped
from pipeline.codegen.int8.job import Job
from pipeline.graph.families import Weighted
from pipeline.graph.tensor import IntArray
from pipeline.kernels.thumb.ending import narrow_end


@dataclass(frozen=True)
class Ends:
    """
    Attributes:
        starts: (channels,): what products are added to, ``ends``: (channels, 4 or 6): see
            ``nn_narrow``.
        zero_point: of the input, if it is still in what is multiplied; it is in ``starts``.
        low, high: bytes.
    """

    starts: IntArray
    ends: IntArray
    bits: int
    coarse: int
    stepped: bool
    low: int
    high: int


def ends(job: Job, zero_point: int) -> Ends:
    """
    Args:
        zero_point: of the input, as far as it is in what is multiplied.
    """
    op, graph = job.operator(Weighted), job.program.graph
    found = narrow_end(op, graph)
    assert found is not None
    weights, bias = (graph.constants[name] for name in op.parameters)
    flat = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)
    words = [found.constants] if found.steps is None else [found.constants, found.steps]
    return Ends(
        wrapped(bias - zero_point * flat - found.base),
        wrapped(np.concatenate(words, axis=1)),
        found.bits,
        found.coarse,
        found.steps is not None,
        found.low & 255,
        found.high & 255,
    )
