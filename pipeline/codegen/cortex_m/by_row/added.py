"""Averages over all of an image, which take its rows one by one as they are made."""

from __future__ import annotations

from pipeline.codegen.binding import form_of
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import row_view
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, added_row


def compute(job: Job) -> None:
    op = job.operator(AveragePool2d)
    piece = job.given(op.inputs[0])
    rows = job.program.box(piece)[0]
    assert rows.start.known, "loops around row kernels are unrolled"
    source = job.tensor(op.inputs[0])
    view = row_view(job, "row0", piece, rows.start.const)
    given = added_row(form_of(job))
    assert given is not None
    blocks, left = divmod(given.columns, min(given.pixels, given.columns))
    full, rest = divmod(min(given.pixels, given.columns), BLOCK)
    job.call(
        "cortex_m/by_row/added",
        f"{about(job, op)}, partial",
        {"out": job.out(), "row0": view},
        {},
        True,
        "row",
        type=f"{source.dtype}_t",
        widen="s8" if source.dtype.signed else "u8",
        given=given,
        blocks=blocks,
        words=full,
        rest=rest,
        left=left,
        zero=given.columns * source.zero_point,
    )
