"""Convolution of some input channels into accumulators: a pass of a loop over channels.

Windows are gathered, widened and without their zero point, so that whatever lies outside adds
nothing. An accumulator must not be added to twice: where the last pixels or channels are computed
together with some that are done, those get windows or weights of zeros.
"""

from __future__ import annotations

from math import prod

import numpy as np

from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.operators import rounded
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.accumulate import passes
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.conv2d import pixels_together
from pipeline.kernels.cortex_m.inner import can_pack
from pipeline.kernels.cortex_m.quick import channel_sums

MOST_WORDS = 4
"""Of a window in the code of the innermost loop."""


def compute(job: Job) -> None:
    op = job.operator(Conv2d)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    values = job.program.graph.constants[name]
    count, kernel_h, kernel_w, depth = values.shape
    given = job.program.box(job.given(source.name))[-1]
    at_once = given.extent.const
    total, size = prod(job.target.shape[:2]), kernel_h * kernel_w * at_once
    view, out = step.channels_view(job), job.out()
    scratch, pass_number = step.scratch(job), given.start // at_once
    if rounded.compute(job, op, at_once, pass_number, view, out, scratch):
        return
    pixels, places = pixels_together(total), weights.order(1, size)
    packed = can_pack(values, channel_sums(op, job.program.graph))
    split = passes(values, at_once).reshape(depth // at_once, count, size)
    stream = np.stack([_once(each, places, packed) for each in split])
    (height, width, _), (_, columns, _) = source.shape, job.target.shape
    (top, _, left, _), (down, across) = op.padding, op.dilation
    job.call(
        "cortex_m/accumulate",
        f"{about(job, op)}, partial",
        {"in": view, "out": out, "scratch": scratch},
        {"pass_number": pass_number},
        True,
        "part",
        pixels=pixels,
        count=total,
        channels=count,
        kernel=(kernel_h, kernel_w),
        stride=op.stride,
        dilation=op.dilation,
        pad=(top, left),
        height=height,
        width=width,
        columns=columns,
        edges=any(op.padding),
        reach=(down * (kernel_h - 1), across * (kernel_w - 1)),
        at_once=at_once,
        halves=halves(size, pixels),
        zero=source.zero_point,
        dot=Dot(
            groups=len(places), unroll=weights.by_fours(len(places), MOST_WORDS), packed=packed
        ),
        pass_bytes=stream.shape[1],
        weights=job.program.constants.add(
            op.name, f"passes_{at_once}", "int8_t", stream,
            f"{op.name}: c_in / {at_once}, then two channels by two elements",
            job.in_flash(name), 4,
        ),
    )  # fmt: skip


def _once(values: IntArray, places: IntArray, packed: bool) -> IntArray:
    """The stream of one pass. ``values``: (channels, elements). Of an odd number of channels the
    last pair's first is done already: zeros."""
    count = len(values)
    pairs = weights.pairs(count, 2)
    if count % 2:
        values = np.concatenate([values, np.zeros_like(values[:1])])
        pairs[-1, 0] = count
    return weights.paired(values, places, pairs, packed)


def halves(size: int, pixels: int) -> list[int]:
    """Where the elements of a window go, in halves of words from its pixel's first word on."""
    return [2 * (2 * (n // 4) + n % 4 % 2) * pixels + n % 4 // 2 for n in range(size)]
