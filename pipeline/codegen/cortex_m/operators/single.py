"""Convolution of one output channel, see ``kernels/cortex_m/single.py``: what is multiplied has no
zero point in it, since taps may lie outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.c.kernel import SCRATCH
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.strips import strips
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import table
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.single import LEAST_CHANNELS
from pipeline.kernels.fast import pairs
from pipeline.kernels.taps import kinds

MOST_PAIRS = 8
"""Most pairs of channels in the code of the innermost loop."""


def in_pieces(job: Job) -> None:
    windows = Windows.of(job, job.source_view)
    rows, columns = windows.axes(job.box)
    whole = windows.channels < LEAST_CHANNELS
    _call(job, "single", windows, rows=rows, columns=columns, whole=whole)


def in_strips(job: Job) -> None:
    op, windows = job.operator(Conv2d), Windows.of(job, job.source_view)
    found, depth = kinds(op, job.program.graph.tensors), windows.channels
    _call(
        job, "strips", windows, pairs=pairs(depth),
        unroll=unrolled(pairs(depth), MOST_PAIRS),
        strips=strips(found, op.stride[1], op.dilation[1], op.padding[2]),
    )  # fmt: skip


def _call(job: Job, word: str, windows: Windows, **more: Any) -> None:
    """``more``: what ``word``'s template knows besides."""
    op, finish = job.operator(Conv2d), end(job)
    parts = [np.zeros((job.target.shape[2], 1), np.int64)]
    if finish.quick:
        parts = [job.program.graph.constants[op.parameters[1]][:, None], finish.quick.constants]
    scratch = {SCRATCH: job.scratch} if word == "strips" else {}
    job.call(
        f"cortex_m/{word}",
        {"in": job.source_view, "out": job.out(), **scratch},
        {"o": job.part.start},
        window=windows,
        out_rows=job.target.shape[0],
        weights=table(job),
        end=finish,
        table=job.table(
            "ends", "int32_t", np.concatenate(parts, axis=1),
            "for each channel what sums begin with, and how they end",
        ),
        **more,
    )  # fmt: skip


WRITERS = {"cortex_m.single": in_pieces, "cortex_m.strips": in_strips}
