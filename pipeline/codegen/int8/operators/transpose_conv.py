"""Transposed convolution: the pixels of each phase are an ordinary one, whose output's rows and
columns lie ``stride`` apart."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import conv2d
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.transpose_conv import Phase, TransposeConv
from pipeline.plan.vocabulary import Affine, Buffer, Rows, Slice, packed


def compute(job: Job) -> None:
    op, tensors = job.operator(TransposeConv), job.program.graph.tensors
    for down in op.along(0, tensors):
        for right in op.along(1, tensors):
            if (phase := _phase(job, op, (down, right))) is not None:
                conv2d.compute(phase, gathers=False)


def _phase(job: Job, op: TransposeConv, pair: tuple[Phase, Phase]) -> Job | None:
    """The pixels of one phase of rows and of columns, as a convolution; None where there are none:
    the same step, in a program that knows these tensors so."""
    found, plan, name = copy(job.program), job.program.plan, op.parameters[0]
    stored, tensor = found.graph.constants[name], job.tensor(name)
    padding, ranges = list[int](), list[tuple[int, int]]()
    for axis, (phase, apart) in enumerate(zip(pair, op.stride, strict=True)):
        part, count = job.box[axis], -(-(op.size[axis] - phase.start) // apart)
        start, stop = (-(-(end.const - phase.start) // apart) for end in (part.start, part.stop))
        ranges.append((max(0, start), min(count, stop)))
        if ranges[-1][0] >= ranges[-1][1]:
            return None
        after = count - 1 + phase.last - (job.source.shape[axis] - 1)
        padding += [-phase.first, after]
    taps = [list(phase.taps) or [0] for phase in pair]
    values = stored[:, taps[0]][:, :, taps[1]]
    if not all(phase.taps for phase in pair):
        values = np.full_like(values, tensor.zero_point)
    size = (ranges[0][1] - ranges[0][0], ranges[1][1] - ranges[1][0])
    whole = tuple(-(-(n - p.start) // s) for n, p, s in zip(op.size, pair, op.stride, strict=True))
    target = replace(job.target, shape=(*whole, job.target.shape[2]))
    changed = {target.name: target, name: replace(tensor, shape=values.shape)}
    known = {each: job.tensor(each) for each in (*op.inputs, *op.parameters)}
    conv = Conv2d(
        op.name, op.inputs, op.output, op.parameters,
        dilation=(pair[0].dilation, pair[1].dilation), groups=op.groups, clip=op.clip,
        padding=(padding[0], padding[1], padding[2], padding[3]), requant=op.requant,
    )  # fmt: skip
    held = {each: found.graph.constants[each] for each in op.parameters} | {name: values}
    found.graph = Graph(op.name, known | changed, (conv,), held, op.inputs, (op.output,))
    step, out = job.step, plan.buffer[job.step.out.buffer]
    buffers = dict(plan.buffer)
    own = replace(
        _apart(out, op, pair, target.shape), name=f"{out.name} {pair[0].start} {pair[1].start}"
    )
    of = replace(
        plan.buffer[job.given(name).buffer], shape=values.shape, map=packed(values.shape, 8)
    )
    of = replace(of, name=f"{of.name} {own.name}")
    buffers |= {own.name: own, of.name: of}
    lo = (ranges[0][0], ranges[1][0], step.out.lo[2])
    kernels = job.given(name)
    taken = Slice(of.name, (kernels.lo[0], 0, 0, 0), (kernels.size[0], *values.shape[1:]))
    ins = tuple(taken if piece is kernels else piece for piece in step.ins)
    made = Slice(own.name, lo, (*size, step.out.size[2]), step.out.copy)
    found.operators = {op.name: conv}
    step = replace(step, out=made, ins=ins, order=())
    track = replace(plan.tracks[0], steps=(step,))
    found.plan = replace(plan, buffers=tuple(buffers.values()), tracks=(track,), resident=())
    return Job(found, conv, step)


def _apart(
    out: Buffer, op: TransposeConv, pair: tuple[Phase, Phase], shape: tuple[int, ...]
) -> Buffer:
    """The place of every ``stride``-th row and column, as a place of its own."""
    (first, left), (down, right) = (phase.start for phase in pair), op.stride
    out = replace(out, name=f"{out.name} from {first}, {left}", shape=shape)
    if isinstance(out.map, Affine):
        row, column, channel = out.map.strides
        base = out.map.base + row * first + column * left
        return replace(out, map=Affine(base, (row * down, column * right, channel)))
    assert isinstance(out.map, Rows), out.map
    column, channel = out.map.strides
    cells = tuple(cell + column * left for cell in out.map.cells[first::down])
    return replace(out, map=Rows(cells, (column * right, channel)))


WRITERS = {"int8.transpose_conv": compute}
