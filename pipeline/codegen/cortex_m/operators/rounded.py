"""Convolution of few input channels into accumulators whose units stand for several.

A window stays in registers for all output channels, without the taps that lie outside. A sum S,
divided by the step and rounded to nearest, halves away from zero, is

    (S * m + 2**31) >> 32,  m = floor(2**32 / step) + 1          SMMULR, SMMLAR

as long as 2 * |S| * step < 2**32: the quotient is then off by less than its distance from any half
but the one it is at, always away from zero.
"""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import narrow
from pipeline.codegen.cortex_m.assembly import REACH
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.accumulate import passes, table
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operator import product_sums
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.accumulate import MOST_WINDOW, PIXELS, pairs_of_pixels
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.fast import pairs
from pipeline.kernels.taps import kinds

LEAST_STEP = 3
"""Least step: for a smaller one m takes more than 31 bits, so weights and step are multiplied."""

MOST_AT_ONCE, MOST_SINGLE = 3, 8
"""Groups of four channels, or channels, in the code of the innermost loop."""


def compute(job: Job, op: Conv2d, at_once: int, pass_number: Value, view: View) -> bool:
    """Write the call if there is such code for the step; return whether there is."""
    out, scratch = job.out(), job.scratch
    name = op.parameters[0]
    values = job.program.graph.constants[name]
    count, kernel_h, kernel_w, _ = values.shape
    if out.bits > 16 or kernel_h * kernel_w * at_once > MOST_WINDOW:
        return False
    split = passes(values, at_once)
    scale = 1 << (-(-LEAST_STEP // out.step) - 1).bit_length()
    flat, source = split.reshape(-1, kernel_h * kernel_w * at_once), job.source
    reach, unit = scale * int(np.abs(product_sums(flat, source)).max()), scale * out.step
    if 2 * reach * unit >= 1 << 32:
        return False
    bytes_fit = 2 * reach < ((1 << out.bits) - 1) * unit
    by_fours = pairs_of_pixels(job.form) and bytes_fit and out.strides[1] <= REACH
    inside = kinds(op, job.program.graph.tensors)
    taps = [
        [(ky, kx, c) for ky in range(kernel_h) for kx in kind.taps for c in range(at_once)]
        for kind in inside
    ]
    words = [pairs(len(each)) for each in taps]
    quads = count // 4 if out.bits == 8 and bytes_fit else 0
    unroll = unrolled(quads or count, MOST_AT_ONCE if quads else MOST_SINGLE)
    job.call(
        "cortex_m/rounded",
        {"in": view, "out": out, "scratch": scratch},
        {"pass_number": pass_number},
        kinds=list(zip(inside, taps, words, strict=True)),
        channels=count,
        code={n: narrow.of_window(out, n, count, quads, unroll) for n in words if n},
        of_pixels=narrow.of_pixels(out) if by_fours else "",
        block=PIXELS,
        window=Windows.of(job, view),
        rows=job.target.shape[0],
        at_once=at_once,
        multiplier=(1 << 32) // unit + 1,
        scale=scale,
        weights=table(job, split),
    )  # fmt: skip
    return True
