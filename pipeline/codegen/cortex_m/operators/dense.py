"""Dense layers of whole tensors, or of a map's rows one by one as they are made: the input is
widened once, for all output channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.windows import halves
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import row_view
from pipeline.graph.operators.dense import Dense
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.by_row.layout import RowLayout
from pipeline.kernels.cortex_m.dense import MOST_WORDS, row_packs, together


def compute(job: Job) -> None:
    op = job.operator(Dense)
    source, (channels,) = job.tensor(op.inputs[0]), job.target.shape
    values = job.program.graph.constants[op.parameters[0]].reshape(channels, -1)
    places, at_once = weights.order(1, source.size), together(channels)
    stream = weights.streamed(
        job, values, places, weights.pairs(channels, at_once), end(job), together=at_once,
        unroll=weights.by_fours(len(places), MOST_WORDS[at_once]),
    )  # fmt: skip
    anywhere = () if form_of(job).in_one_piece(source.name) else source.shape
    _call(job, step.source_view(job), source.size, Value(), anywhere=anywhere, less="", **stream)


def by_row(job: Job) -> None:
    op = job.operator(Dense)
    source, name, piece = job.tensor(op.inputs[0]), op.parameters[0], job.given(op.inputs[0])
    rows, every = job.program.box(piece)[0], job.program.graph.constants[name]
    assert rows.start.known, "loops around row kernels are unrolled"
    given = RowLayout.in_buffer(job.program.buffer(piece))
    places, at_once = weights.order(1, given.bytes), together(len(every))
    packed = row_packs(op, job.program.graph)
    unroll = weights.by_fours(len(places), MOST_WORDS[at_once])
    stream = [weights.once(row, places, at_once, packed) for row in as_rows_lie(every, given)]
    _call(
        job,
        row_view(job, "in", piece, rows.start.const),
        given.bytes,
        rows.start * len(stream[0]),
        anywhere=(),
        less=f"0x{(-source.zero_point & 0xFFFF) * 0x10001:08X}u",
        end=None,
        table="",
        dot=Dot(groups=len(places), unroll=unroll, packed=packed),
        weights=job.program.constants.add(
            op.name, "row_weights", "int8_t", np.concatenate(stream),
            f"{op.name}: for each row {at_once} channels by two elements, as rows lie",
            job.in_flash(name), 4,
        ),
    )  # fmt: skip


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
