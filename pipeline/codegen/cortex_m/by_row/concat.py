"""Tensors side by side along their channels, of a row in blocks."""

from __future__ import annotations

from pipeline.codegen.cortex_m.by_row.rows import out_row
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import made_row, row_view
from pipeline.graph.operators.concat import Concat
from pipeline.kernels.cortex_m.by_row.layout import RowLayout


def compute(job: Job) -> None:
    op, row = job.operator(Concat), made_row(job)
    target = RowLayout.in_buffer(job.program.buffer(job.step.out))
    pieces = [job.given(name) for name in op.inputs]
    rows = [row_view(job, f"row{n}", piece, row) for n, piece in enumerate(pieces)]
    job.call(
        "cortex_m/by_row/concat",
        f"{op.name}: {len(rows)} tensors -> {shape_text(job.target.shape)}",
        {"out": out_row(job), **{view.name: view for view in rows}},
        {},
        True,
        "row",
        channels=[job.tensor(name).shape[2] for name in op.inputs],
        blocks=target.full // target.pixels,
        pixels=target.pixels,
        left=target.columns - target.full,
    )
