"""Depthwise of a row in blocks with windows wider than three pixels, channel by channel."""

from __future__ import annotations

from pipeline.codegen.cortex_m import step
from pipeline.codegen.cortex_m.by_row.depthwise import Tail
from pipeline.codegen.cortex_m.by_row.rows import input_rows, layouts, out_row
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.operators.depthwise import table
from pipeline.codegen.cortex_m.taps import Row, last
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.by_row.depthwise_wide import RowDepthwiseWide
from pipeline.kernels.cortex_m.by_row.layout import BLOCK
from pipeline.kernels.cortex_m.depthwise import columns, odd_kernel


def compute(job: Job) -> None:
    op, tensors = job.operator(Conv2d), job.program.graph.tensors
    source, target = layouts(job, RowDepthwiseWide())
    tensor, name, finish = job.tensor(op.inputs[0]), op.parameters[0], end(job)
    _, kernel_h, kernel_w, _ = tensors[name].shape
    values = job.program.graph.constants[name].reshape(source.channels, kernel_h, kernel_w)
    rows, half = table(values, finish, op.stride[1]), odd_kernel(kernel_w) // 2
    groups, left = divmod(target.columns, BLOCK)
    words = source.columns // BLOCK
    out = out_row(job)
    job.call(
        "cortex_m/by_row/depthwise_wide",
        about(job, op),
        {"out": out, **{row.name: row for row in input_rows(job)}, "scratch": step.scratch(job)},
        {},
        job.apart,
        "row",
        type=f"{tensor.dtype}_t",
        widen="s8" if tensor.dtype.signed else "u8",
        rows=kernel_h,
        columns=columns(op, tensors) // 2,
        pad=op.padding[2],
        given=source,
        made=target,
        words=words,
        word_step=source.at(BLOCK) if words > 1 else 0,
        tail=Tail.of(source) or Tail(BLOCK * words, source.apart(0)),
        groups=groups,
        full=Row(BLOCK, half, op.stride[1]),
        last=Row(last(left, op.stride[1]), half, op.stride[1]) if left else None,
        group_step=target.at(BLOCK) if groups > 1 else 0,
        out_tail=Tail.of(target) or Tail(target.at(BLOCK * groups), target.apart(0)),
        outside=f"0x{(tensor.zero_point & 0xFFFF) * 0x10001:08X}u",
        channel_words=rows.shape[1],
        first_weight=4,
        table=job.program.constants.add(
            op.name, "row_weights", "int32_t", rows,
            f"{op.name}: for each channel what sums begin with, how they end, pairs of weights",
            job.in_flash(name),
        ),
        end=finish,
    )  # fmt: skip
