"""Pointers to rows, as row kernels take them, and whether the output may lie where it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import made_row, row_view
from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.by_row.base import RowKernel
from pipeline.kernels.cortex_m.by_row.layout import RowLayout


def out_row(job: Job) -> View:
    """The one that the step makes."""
    return row_view(job, "out", job.step.out, made_row(job))


def input_rows(job: Job) -> list[View]:
    """Those under a convolution's kernel, ``row0`` and so on; one that is outside of the image is a
    row of zero points."""
    op = job.operator(Conv2d)
    source, found = job.tensor(op.inputs[0]), list[View]()
    top, piece = made_row(job) * op.stride[0] - op.padding[0], job.given(source.name)
    for ky in range(job.tensor(op.parameters[0]).shape[1]):
        row = top + ky * op.dilation[0]
        inside = 0 <= row < source.shape[0]
        view = row_view(job, f"row{ky}", piece, row if inside else 0)
        if not inside:
            view = replace(view, array=_outside(job, source), offset=Value(), constant=True)
        found.append(view)
    return found


def pooled_rows(job: Job) -> list[View]:
    """Those under a pooling's window that are inside of the image, ``row0`` and so on, or the one
    that is added."""
    op, piece = job.operator(Pool2d), job.given(job.op.inputs[0])
    source, top = job.tensor(op.inputs[0]), made_row(job) * op.stride[0] - op.padding[0]
    inside = range(max(0, top), min(source.shape[0], top + op.kernel[0]))
    if job.partial:
        added = job.program.box(piece)[0]
        assert added.start.known, "loops around row kernels are unrolled"
        inside = range(added.start.const, added.start.const + 1)
    return [row_view(job, f"row{n}", piece, row) for n, row in enumerate(inside)]


def layouts(
    job: Job, kernel: RowKernel, rows: Sequence[View] | None = None
) -> tuple[RowLayout, RowLayout]:
    """Return input and output rows' layouts; ``rows``: those read, if not a convolution's.

    Raises:
        ThimbleError: where the output lies over an input in a way that the kernel doesn't bear.
    """
    form = form_of(job)
    if job.overlaps:
        turns, out = kernel.access_order(form), out_row(job).offset.const
        for view in input_rows(job) if rows is None else rows:
            apart = out - view.offset.const
            meets = -len(turns.written) < apart < len(turns.read)
            if view.constant or not meets or not turns.forbids(apart):
                continue
            raise ThimbleError(
                f"{job.op.name}: the plan has {kernel.name} write its output {apart} B after an "
                "input row, which it would overwrite before it is read"
            )
    return kernel.known(form)


def _outside(job: Job, like: Tensor) -> str:
    """Name a row of zero points, as long as the longest that is read outside of an image of this
    type and zero point: all of them have one table."""
    graph, kind = job.program.graph, (like.dtype, like.zero_point)
    read = (graph.tensors[op.inputs[0]] for op in graph.operators if isinstance(op, Conv2d))
    size = max(prod(each.shape[1:]) for each in read if (each.dtype, each.zero_point) == kind)
    return job.program.constants.add(
        "outside", f"{size}_{like.zero_point & 255}", f"{like.dtype}_t",
        np.full(size, like.zero_point),
        f"rows outside of images: {size} times the zero point {like.zero_point}", align=4,
    ).name  # fmt: skip
