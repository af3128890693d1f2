"""Convolution of some input channels into accumulators: a pass of a loop over channels.

Windows are gathered, widened and without their zero point, so that whatever lies outside adds
nothing. An accumulator must not be added to twice: where the last pixels or channels are computed
together with some that are done, those get windows or weights of zeros.
"""

from __future__ import annotations

from math import prod

import numpy as np

from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.ending import channel_sums
from pipeline.codegen.cortex_m.operators import rounded
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.accumulate import passes
from pipeline.codegen.int8.operators.conv2d import about
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.scratch import added_bytes, pixels_together

MOST_WORDS = 4
"""Of a window in the code of the innermost loop."""


def compute(job: Job) -> bool:
    op = job.op
    assert isinstance(op, Conv2d)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    values = job.program.graph.constants[name]
    count, kernel_h, kernel_w, depth = values.shape
    given = job.program.box(job.given(source.name))[-1]
    at_once = given.extent.const
    if not (
        job.apart
        and op.groups == 1
        and count > 1
        and source.dtype.bits == 8
        and given.extent.known
        and at_once > 0
        and depth % at_once == 0
        and not any(n % at_once for n in (given.start.const, *(k for _, k in given.start.terms)))
        and step.covers(job)
    ):
        return False
    total, size = prod(job.target.shape[:2]), kernel_h * kernel_w * at_once
    view, out = step.channels_view(job), job.out()
    needed = added_bytes(op, job.program.graph.tensors, at_once, out.bits)
    scratch = step.scratch(job, needed)
    if scratch is None or not (step.evenly_spaced(view) and step.evenly_spaced(out)):
        return False
    if rounded.compute(job, op, at_once, given.start // at_once, view, out, scratch):
        return True
    pixels, places = pixels_together(total), weights.order(1, size)
    packed = weights.can_pack(values, channel_sums(job))
    split = passes(values, at_once).reshape(depth // at_once, count, size)
    stream = np.stack([_once(each, places, packed) for each in split])
    (height, width, _), (_, columns, _) = source.shape, job.target.shape
    (top, _, left, _), (down, across) = op.padding, op.dilation
    job.program.call(
        op.name,
        "cortex_m/accumulate",
        f"{about(job, op)}, partial",
        {"in": view, "out": out, "scratch": scratch},
        {"pass_number": given.start // at_once},
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
        groups=len(places),
        unroll=weights.unrolled(len(places), MOST_WORDS),
        packed=packed,
        pass_bytes=stream.shape[1],
        weights=job.program.constants.add(
            op.name, f"passes_{at_once}", "int8_t", stream,
            f"{op.name}: c_in / {at_once}, then two channels by two elements",
            job.in_flash(name), 4,
        ),
    )  # fmt: skip
    return True


def _once(values: IntArray, places: IntArray, packed: bool) -> IntArray:
    """The stream of one pass. ``values``: (channels, elements). Of an odd number of channels the
    last pair's first is done already: zeros."""
    count = len(values)
    pairs = weights.pairs(count, 2)
    if count % 2:
        values = np.concatenate([values, np.zeros_like(values[:1])])
        pairs[-1, 0] = count
    return weights.interleaved(values, places, pairs, packed)


def halves(size: int, pixels: int) -> list[int]:
    """Where the elements of a window go, in halves of words from its pixel's first word on."""
    return [2 * (2 * (n // 4) + n % 4 % 2) * pixels + n % 4 // 2 for n in range(size)]
