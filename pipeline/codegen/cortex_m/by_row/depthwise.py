"""Depthwise of a row in blocks, channel by channel."""

from __future__ import annotations

from pipeline.codegen.cortex_m.by_row.depthwise_unit import Code, Layer
from pipeline.codegen.cortex_m.by_row.rows import Alike, input_rows
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import layouts, out_row
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.by_row.depthwise import RowDepthwise
from pipeline.kernels.work import positions


def compute(job: Job) -> None:
    op, kernel, form = job.operator(Conv2d), RowDepthwise(), job.form
    source, target = layouts(job, kernel, input_rows(job))
    tensor, name, finish = job.source, op.parameters[0], end(job)
    rows, columns = positions(form)
    values = job.program.graph.constants[name].reshape(source.channels, rows, columns)
    layer = Layer(op, rows, columns, source, target, f"{tensor.dtype}_t")
    codes = (Code(unit, layer) for unit in kernel.units(form))
    runs = Alike.all(codes, lambda code: (code.lines, code.stored))
    table = layer.table(values, finish, tensor.zero_point)
    job.call(
        "cortex_m/by_row/depthwise",
        {"out": out_row(job), **{row.name: row for row in input_rows(job)}},
        kind="row",
        layer=layer,
        runs=runs,
        carried=max(len(run.one.carried_on) for run in runs),
        words=table.shape[1],
        table=job.table(
            "row_weights", "int32_t", table,
            "for each channel what sums begin with, how they end, weights", weights=True,
        ),
        end=finish,
    )  # fmt: skip


WRITERS = {"cortex_m.row_depthwise": compute}
