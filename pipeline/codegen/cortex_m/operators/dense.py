"""Dense layers of whole tensors, or of a map's rows one by one as they are made: the input is
widened once, for all output channels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.windows import halves
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import row_view
from pipeline.graph.operators.dense import Dense
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.by_row.layout import RowLayout
from pipeline.kernels.cortex_m.dense import MOST_WORDS, row_sums, together


def compute(job: Job) -> None:
    op = job.operator(Dense)
    source, (channels,) = job.tensor(op.inputs[0]), job.target.shape
    values = job.program.graph.constants[op.parameters[0]].reshape(channels, -1)
    order, at_once = weights.order(1, source.size), together(channels)
    stream = weights.streamed(
        job, values, order, weights.pairs(channels, at_once), end(job),
        unroll=weights.by_fours(len(order), MOST_WORDS[at_once]),
    )  # fmt: skip
    places = [f"n / {prod(source.shape[k + 1 :])} % {n}" for k, n in enumerate(source.shape)]
    anywhere = [] if form_of(job).in_one_piece(source.name) else places
    _call(job, step.source_view(job), source.size, Value(), anywhere=anywhere, less="", **stream)


def by_row(job: Job) -> None:
    op = job.operator(Dense)
    source, name, piece = job.tensor(op.inputs[0]), op.parameters[0], job.given(op.inputs[0])
    rows, every = job.program.box(piece)[0], job.program.graph.constants[name]
    assert rows.start.known, "loops around row kernels are unrolled"
    given = RowLayout.in_buffer(job.program.buffer(piece))
    places, at_once = weights.order(1, given.bytes), together(len(every))
    groups, row = weights.once(len(every), at_once, len(every[0])), as_rows_lie(every, given)
    stream = weights.streamed(
        job, row.reshape(-1, given.bytes), places, groups, row_sums(every),
        unroll=weights.by_fours(len(places), MOST_WORDS[at_once]), name="row_weights",
    )  # fmt: skip
    _call(
        job,
        row_view(job, "in", piece, rows.start.const),
        given.bytes,
        rows.start * (groups.size // len(every[0]) // 2 * stream["dot"].pair_bytes),
        anywhere=[],
        less=f"0x{(-source.zero_point & 0xFFFF) * 0x10001:08X}u",
        **stream,
    )


def as_rows_lie(weights: IntArray, row: RowLayout) -> IntArray:
    """(outputs, rows, columns, channels) -> (rows, outputs, bytes of a row)."""
    found = np.zeros((weights.shape[1], weights.shape[0], row.bytes), dtype=np.int64)
    for column in range(row.columns):
        found[:, :, row.places(column)] = weights[:, :, column].transpose(1, 0, 2)
    return found


def _call(job: Job, view: View, inputs: int, first: Value, **shared: Any) -> None:
    """
    Args:
        first: byte of the weights; ``shared``: what the template knows besides.
    """
    source, (channels,) = job.tensor(job.op.inputs[0]), job.target.shape
    job.call(
        "cortex_m/dense",
        f"{job.op.name}: dense {shape_text(source.shape)} -> {shape_text((channels,))}{job.words}",
        {"in": view, "out": job.out(), "scratch": step.scratch(job)},
        {"first": first},
        job.apart or job.partial,
        "row" * job.partial,
        inputs=inputs,
        channels=channels,
        pairs=together(channels) // 2,
        halves=halves(inputs % 4, 1),
        **shared,
    )
