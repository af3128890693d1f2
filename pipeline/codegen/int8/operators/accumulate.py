"""Convolution of a few input channels into accumulators: their window is gathered once a pixel.

A loop over channels makes a few at a time (Pex), so that the sums of a pass are short: what a
window's edges, rings and strides cost is paid once for all output channels, and the weights of a
pass lie side by side for each of them.
"""

from pipeline.codegen.c.values import Span
from pipeline.codegen.constants import Array
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import Weights
from pipeline.codegen.int8.windowed import Windowed
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray

MOST_GATHERED = 64
"""Elements of a window: 4 bytes each on the stack."""

STRAIGHT = 16
"""Products without a loop."""


def passes(weights: IntArray, at_once: int) -> IntArray:
    """(c_out, kh, kw, c_in) -> (passes, c_out, kh, kw, at_once)."""
    count, height, width, depth = weights.shape
    split = weights.reshape(count, height, width, depth // at_once, at_once)
    return split.transpose(3, 0, 1, 2, 4)


def table(job: Job, split: IntArray) -> Array:
    """Add the weights of passes, see ``passes``."""
    *_, at_once = split.shape
    about = f"c_in / {at_once}, c_out, kh, kw, {at_once}"
    return job.table(f"passes_{at_once}", "int8_t", split, about, weights=True)


def compute(windows: Windowed, channels: Span) -> bool:
    """Write the call if the step is one of these; return whether it is."""
    job, outs = windows.job, windows.outs
    op = job.operator(Conv2d)
    name = op.parameters[0]
    values = job.program.graph.constants[name]
    count, kernel_h, kernel_w, depth = values.shape
    at_once = channels.extent.const
    gathered = kernel_h * kernel_w * at_once
    regular = channels.extent.known and at_once > 0 and depth % at_once == 0
    covered = outs.start.known and outs.start.const == 0 and outs.extent.const == count
    starts = [channels.start.const, *(coef for _, coef in channels.start.terms)]
    if not (
        job.partial
        and job.apart
        and job.source.dtype.bits == 8
        and not windows.view.scattered
        and not job.held(name)
        and op.groups == 1
        and regular
        and covered
        and gathered <= MOST_GATHERED
        and not any(start % at_once for start in starts)
    ):
        return False
    windows.call(
        "int8/accumulate", Weights(table(job, passes(values, at_once))),
        {"c_start": channels.start}, at_once=at_once, gathered=gathered,
        straight=gathered if gathered <= STRAIGHT else 0, weight_zero=job.tensor(name).zero_point,
    )  # fmt: skip
    return True
