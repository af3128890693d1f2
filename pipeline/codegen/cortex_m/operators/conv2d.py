"""Convolution of an image's rows, or of some of its channels into accumulators: windows of some
pixels are widened once, for all channels.

What is added up has no zero point in it, so that what lies outside adds nothing. An accumulator
must not be added to twice: where the last pixels or channels are computed together with some that
are done, those get windows or weights of zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c.values import Value, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.operators import rounded
from pipeline.codegen.cortex_m.windows import Windows, convolved_view
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.accumulate import passes
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.conv2d import MOST_WORDS, Rows, pixels_of
from pipeline.kernels.cortex_m.inner import can_pack
from pipeline.kernels.cortex_m.quick import channel_sums


def compute(job: Job) -> None:
    op, part, channels = job.operator(Conv2d), step.part(job), job.target.shape[2]
    view, flat = convolved_view(job)
    some = Rows.of(op, job.program.graph.tensors)
    stream = weights.of_windows(job, some, weights.passes(channels, part.at_once, 2))
    uneven = part.at_once % 2 or channels % part.at_once % 2
    values = {
        "first_pair": part.group(2), "channels": part.extent, "last_pair": part.extent + -2,
    }  # fmt: skip
    _call(job, view, some, values, flat=flat, apart=job.apart, uneven=uneven, less="", **stream)


def accumulate(job: Job) -> None:
    op = job.operator(Conv2d)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    given = job.program.box(job.given(source.name))[-1]
    view = step.rows_view(job, given, whole(source.shape[0]))
    at_once, count = given.extent.const, job.target.shape[2]
    if rounded.compute(job, op, at_once, given.start // at_once, view):
        return
    some = Rows.of(op, job.program.graph.tensors, at_once)
    every = job.program.graph.constants[name]
    packed = can_pack(every, channel_sums(op, job.program.graph))
    rows, columns = some.rows, some.columns
    split = passes(every[:, rows.start : rows.stop, columns.start : columns.stop], at_once)
    places = weights.order(some.number, some.elements)
    flat = split.reshape(len(split), count, -1)
    _call(
        job,
        view,
        some,
        {
            "first_pair": given.start // at_once * -(-count // 2), "channels": Value(count),
            "last_pair": Value(count - 2),
        },
        flat=False,
        apart=True,
        uneven=count % 2,
        less=f"0x{(-source.zero_point & 0xFFFF) * 0x10001:08X}u",
        end=None,
        table="",
        dot=Dot(
            groups=len(places), unroll=weights.by_fours(len(places), MOST_WORDS), packed=packed
        ),
        weights=job.program.constants.add(
            op.name, f"passes_{at_once}", "int8_t",
            np.stack([weights.once(each, places, 2, packed) for each in flat]),
            f"{op.name}: c_in / {at_once}, then two channels by two elements",
            job.in_flash(name), 4,
        ),
    )  # fmt: skip


def _call(
    job: Job, view: View, some: Rows, values: dict[str, Value], *, apart: bool, **shared: Any
) -> None:
    """``shared``: what the template knows besides."""
    pixels, count = pixels_of(form_of(job)), job.box[0].extent * job.target.shape[1]
    job.call(
        "cortex_m/conv2d",
        about(job, job.operator(Conv2d)) + job.words,
        {"in": view, "out": job.out(), "scratch": step.scratch(job)},
        {
            **values,
            "y_start": job.box[0].start,
            "in_y": view.box[0].start,
            "count": count,
            "last_block": count - pixels,
        },
        apart,
        window=Windows.of(job, view, some, pixels),
        pixels=pixels,
        partial=job.partial,
        kept=0 if apart else count.const % pixels,
        even=count.known and count.const % pixels == 0,
        **shared,
    )
