"""Windows whose output channels have one input channel each: depthwise convolution and pooling."""

from __future__ import annotations

from pipeline.codegen.c import window
from pipeline.codegen.c.values import Span, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.c.window import WindowAxis
from pipeline.codegen.int8.ending import Ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import Weights
from pipeline.errors import ThimbleError

LARGEST_BLOCK = 32
"""Sums kept at a time: they live on the stack."""


def call(
    job: Job,
    about: str,
    view: View,
    axes: tuple[WindowAxis, WindowAxis],
    inside: tuple[Span, Span],
    outs: Span,
    *,
    divide: int,
    zero: int,
    weights: Weights | None,
    weight_row: tuple[int, int],
    maximum: bool,
    opened: int,
    ending: Ending | None,
) -> None:
    """
    Args:
        divide: output channel o reads input channel o // divide; 0: there is one input channel.
        weights: a table of (1, kh, kw, c_out), or None to take the inputs as they are.
        weight_row: the table's strides along kh and kw.
        opened: what sums (or maxima) begin with.
    """
    unit = job.unit()
    if max(unit[:2]) > 1:
        raise ThimbleError(f"{job.op.name}: code for this core overwrites its input pixel by pixel")
    most = outs.most if unit[2] > 1 else min(outs.most, LARGEST_BLOCK)
    even = outs.extent.known and outs.extent.const % most == 0 if most else False
    if not even and unit[2] == 1:
        sizes = range(LARGEST_BLOCK // 4, LARGEST_BLOCK + 1)
        divisors = [n for n in sizes if outs.extent.known and outs.extent.const % n == 0]
        most, even = (divisors[-1], True) if divisors else (most, False)
    block = {"block": max(most, 1)}
    job.call(
        "int8/channels",
        about,
        {
            "in": view,
            **(weights.views if weights else {}),
            "out": job.out((*job.box[:2], outs), ring_axes=3),
        },
        {
            **window.ranges(job.box, inside, outs),
            **window.begins(view),
            **(weights.values if weights else {}),
        },
        job.apart,
        "part" if job.partial else "",
        job.order,
        any_strides=True,
        rows=axes[0],
        columns=axes[1],
        divide=divide,
        zero=zero,
        weights=weights and weights.array,
        weight_row=weight_row,
        maximum=maximum,
        opened=opened,
        ending=ending,
        even=even,
        **({"most": block} if outs.covers(whole(job.target.shape[2])) else block),
    )
