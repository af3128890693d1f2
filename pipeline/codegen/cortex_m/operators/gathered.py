"""Depthwise convolutions and the like pixel by pixel, in any order, over what they are made of."""

from typing import Any

import numpy as np

from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.depthwise import LANES
from pipeline.kernels.cortex_m.gathered import MOST_TAPS_UNROLLED


def depthwise(job: Job) -> None:
    op = job.operator(Conv2d)
    finish, values = end(job), job.program.graph.constants[op.parameters[0]]
    rows = table(values.reshape(len(values), -1), finish)
    call(
        job, "cortex_m/gathered_depthwise", end=finish, row_words=rows.shape[1],
        unrolled=values[0].size <= MOST_TAPS_UNROLLED,
        table=job.table(
            "weights", "int32_t", rows,
            "for four channels what sums begin with, how they end, and each tap's", weights=True,
        ),
    )  # fmt: skip


def table(values: IntArray, finish: End) -> IntArray:
    """(groups of four channels, words). ``values``: (channels, taps). Of a tap's words the first
    has channels 2 and 0, the second 3 and 1, the former in the lower half."""
    groups = weights.pairs(len(values), LANES)
    head = finish.heads(finish.factor * finish.starts[groups], groups)
    four = (finish.factor * values.astype(np.int64))[groups]  # (groups, 4, taps)
    pairs = weights.in_words(four[:, 2:], four[:, :2])
    return np.concatenate([head, pairs.transpose(0, 2, 1).reshape(len(groups), -1)], axis=1)


def call(job: Job, template: str, **shared: Any) -> None:
    """``shared``: what the template knows besides."""
    view = job.source_view
    window = Windows.of(job, view)
    job.rows_call(template, view, order=job.order, any_strides=True, window=window, **shared)


WRITERS = {"cortex_m.gathered_depthwise": depthwise}
