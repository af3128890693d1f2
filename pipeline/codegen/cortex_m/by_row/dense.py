"""Dense layers on a map, which take its rows one by one as they are made."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import row_view
from pipeline.graph.operators.dense import Dense
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.by_row.dense import TOGETHER
from pipeline.kernels.cortex_m.by_row.layout import RowLayout


def compute(job: Job) -> None:
    op = job.operator(Dense)
    source, name, piece = job.tensor(op.inputs[0]), op.parameters[0], job.given(op.inputs[0])
    rows = job.program.box(piece)[0]
    assert rows.start.known, "loops around row kernels are unrolled"
    given = RowLayout.in_buffer(job.program.buffer(piece))
    (outputs,) = job.target.shape
    values = as_rows_lie(job.program.graph.constants[name], given)
    words = -(-given.bytes // 4)
    less, stream = source.zero_point * values.sum(axis=2), grouped(values, words)
    constants = job.program.constants
    job.call(
        "cortex_m/by_row/dense",
        f"{op.name}: dense {shape_text(source.shape)} -> {shape_text((outputs,))}, partial",
        {"out": job.out(), "row0": row_view(job, "row0", piece, rows.start.const)},
        {"row": Value(rows.start.const)},
        True,
        "row",
        type=f"{source.dtype}_t",
        widen="s8" if source.dtype.signed else "u8",
        words=given.bytes // 4,
        rest=given.bytes % 4,
        outputs=outputs,
        together=TOGETHER,
        row_bytes=4 * words * outputs,
        weights=constants.add(
            op.name, "row_weights", "int8_t", stream.reshape(-1),
            f"{op.name}: for each row {TOGETHER} outputs by four elements, as rows lie",
            job.in_flash(name), 4,
        ),
        less=constants.add(
            op.name, "row_less", "int32_t", less.reshape(-1),
            f"{op.name}: for each row and output what zero points add up to",
        ),
    )  # fmt: skip


def as_rows_lie(weights: IntArray, row: RowLayout) -> IntArray:
    """(outputs, rows, columns, channels) -> (rows, outputs, bytes of a row)."""
    found = np.zeros((weights.shape[1], weights.shape[0], row.bytes), dtype=np.int64)
    for column in range(row.columns):
        found[:, :, row.places(column)] = weights[:, :, column].transpose(1, 0, 2)
    return found


def grouped(values: IntArray, words: int) -> IntArray:
    """(rows, outputs, bytes) -> for each row and group of outputs word by word those of each."""
    rows, outputs, size = values.shape
    padded = np.zeros((rows, outputs, 4 * words), dtype=np.int64)
    padded[:, :, :size] = values
    groups = [padded[:, n : n + TOGETHER] for n in range(0, outputs, TOGETHER)]
    streams = [
        g.reshape(rows, -1, words, 4).transpose(0, 2, 1, 3).reshape(rows, -1) for g in groups
    ]
    return np.concatenate(streams, axis=1)
