"""Dense layers of whole tensors, or of a map's rows one by one as they are made: the input is
widened once, for all output channels."""

from math import prod
from typing import Any

import numpy as np

from pipeline.codegen.c.expressions import both
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import row_view
from pipeline.codegen.int8.windows import halves
from pipeline.graph.operator import product_sums
from pipeline.graph.operators.conv2d import Dense
from pipeline.graph.tensor import IntArray
from pipeline.kernels.by_row import RowLayout, added_row
from pipeline.kernels.cortex_m.dense import MOST_WORDS, together


def compute(job: Job) -> None:
    op = job.operator(Dense)
    source, (channels,) = job.source, job.target.shape
    values = job.program.graph.constants[op.parameters[0]].reshape(channels, -1)
    groups = weights.pairs(channels, together(channels))
    places = [f"n / {prod(source.shape[k + 1 :])} % {n}" for k, n in enumerate(source.shape)]
    anywhere = [] if job.form.in_one_piece(source.name) else places
    view = job.source_view
    _call(job, view, values, groups, end(job), "weights", Value(), anywhere=anywhere, less="")


def by_row(job: Job) -> None:
    op = job.operator(Dense)
    source, piece = job.source, job.given(op.inputs[0])
    rows, every = job.program.box(piece)[0], job.program.graph.constants[op.parameters[0]]
    assert rows.start.known, "loops around row kernels are unrolled"
    given = added_row(job.form)
    assert given is not None
    values = as_rows_lie(every, given)
    flat = values.reshape(-1, values.shape[2])
    view = row_view(job, "in", piece, rows.start.const)
    groups = weights.once(len(every), together(len(every)), len(values))
    _call(
        job, view, flat, groups, product_sums(flat, source), "row_weights",
        rows.start * (len(groups) // len(values)), anywhere=[], less=both(-source.zero_point),
    )  # fmt: skip


def as_rows_lie(weights: IntArray, row: RowLayout) -> IntArray:
    """(outputs, rows, columns, channels) -> (rows, outputs, bytes of a row)."""
    found = np.zeros((weights.shape[1], weights.shape[0], row.bytes), dtype=np.int64)
    for column in range(row.columns):
        found[:, :, row.places(column)] = weights[:, :, column].transpose(1, 0, 2)
    return found


def _call(
    job: Job, view: View, values: IntArray, groups: IntArray, finish: End | IntArray, name: str,
    first: Value, **shared: Any,
) -> None:  # fmt: skip
    """
    Args:
        values, groups, finish, name: see ``weights.streamed``; ``first``: of the groups.
        shared: what the template knows besides.
    """
    (_, inputs), (_, at_once) = values.shape, groups.shape
    places = weights.order(1, inputs)
    unroll = weights.by_fours(len(places), MOST_WORDS[at_once])
    stream = weights.streamed(job, values, places, groups, finish, unroll=unroll, name=name)
    job.call(
        "cortex_m/dense", {"in": view, "out": job.out(), "scratch": job.scratch},
        {"first": first * (at_once // 2 * stream["dot"].pair_bytes)}, kind="row" * job.partial,
        inputs=inputs, pairs=at_once // 2, halves=halves(inputs % 4, 1),
        vacant=halves(-inputs % 4, 1, inputs % 4), **shared | stream,
    )  # fmt: skip


WRITERS = {"cortex_m.dense": compute, "cortex_m.row_dense": by_row}
