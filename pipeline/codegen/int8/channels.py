"""Windows whose output channels have one input channel each: depthwise convolution and pooling."""

from __future__ import annotations

from pipeline.codegen.c.values import whole
from pipeline.codegen.int8.weights import Weights
from pipeline.codegen.int8.windowed import Windowed
from pipeline.errors import ThimbleError

LARGEST_BLOCK = 32
"""Sums kept at a time: they live on the stack."""


def call(
    windows: Windowed,
    *,
    divide: int,
    zero: int,
    weights: Weights | None = None,
    weight_row: tuple[int, int] = (0, 0),
) -> None:
    """
    Args:
        divide: output channel o reads input channel o // divide; 0: there is one input channel.
        weights: a table of (1, kh, kw, c_out), or None to take the inputs as they are.
        weight_row: the table's strides along kh and kw.
    """
    job, outs = windows.job, windows.outs
    unit = windows.unit()
    if max(unit[:2]) > 1:
        raise ThimbleError(f"{job.op.name}: code for this core overwrites its input pixel by pixel")
    most = outs.most if unit[2] > 1 else min(outs.most, LARGEST_BLOCK)
    even = outs.extent.known and outs.extent.const % most == 0 if most else False
    if not even and unit[2] == 1:
        sizes = range(LARGEST_BLOCK // 4, LARGEST_BLOCK + 1)
        divisors = [n for n in sizes if outs.extent.known and outs.extent.const % n == 0]
        most, even = (divisors[-1], True) if divisors else (most, False)
    if windows.by_channel:
        most, even = 1, True
    block = {"block": max(most, 1)}
    windows.call(
        "int8/channels",
        weights,
        divide=divide,
        zero=zero,
        weight_zero=job.tensor(job.op.parameters[0]).zero_point if weights else 0,
        weight_row=weight_row,
        reduction=job.op.reduction,
        opened=job.op.reduction.start(job.source.dtype),
        ending=job.ending,
        even=even,
        **({"most": block} if outs.covers(whole(job.target.shape[2])) else block),
    )
