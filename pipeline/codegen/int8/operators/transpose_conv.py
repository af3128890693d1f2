"""Transposed convolution: the pixels of each phase are an ordinary one, whose output's rows and
columns lie ``stride`` apart."""

from dataclasses import replace

import numpy as np

from pipeline.codegen.int8.convolution import instead
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import sliding
from pipeline.graph.operators.conv2d import Conv2d, Phase, TransposeConv
from pipeline.plan.vocabulary import Affine, Buffer, Rows, Slice, packed


def compute(job: Job) -> None:
    op, tensors = job.operator(TransposeConv), job.program.graph.tensors
    for down in op.along(0, tensors):
        for right in op.along(1, tensors):
            if (phase := _phase(job, op, (down, right))) is not None:
                sliding.compute(phase, gathers=False)


def _phase(job: Job, op: TransposeConv, pair: tuple[Phase, Phase]) -> Job | None:
    """Return the pixels of one phase of rows and of columns, as a convolution; None where there are
    none: the same step, in a program that knows these tensors so."""
    plan, name, graph = job.program.plan, op.parameters[0], job.program.graph
    padding, extents, ranges = list[int](), list[int](), list[tuple[int, int]]()
    for axis, (phase, apart) in enumerate(zip(pair, op.stride, strict=True)):
        part, count = job.box[axis], -(-(op.size[axis] - phase.start) // apart)
        start, stop = (-(-(end.const - phase.start) // apart) for end in (part.start, part.stop))
        extents.append(count)
        ranges.append((max(0, start), min(count, stop)))
        padding += [-phase.first, count + phase.last - job.source.shape[axis]]
    if any(start >= stop for start, stop in ranges):
        return None
    taps = [list(phase.taps) or [0] for phase in pair]
    values, zero = graph.constants[name][:, taps[0]][:, :, taps[1]], job.tensor(name).zero_point
    if not all(phase.taps for phase in pair):
        values = np.full_like(values, zero)
    tensors = {each: job.tensor(each) for each in (*op.inputs, *op.parameters, op.output)}
    for each, shape in ((name, values.shape), (op.output, (*extents, job.target.shape[2]))):
        tensors[each] = replace(tensors[each], shape=shape)
    conv = Conv2d(
        op.name, op.inputs, op.output, op.parameters,
        dilation=(pair[0].dilation, pair[1].dilation), groups=op.groups, clip=op.clip,
        padding=(padding[0], padding[1], padding[2], padding[3]), requant=op.requant,
    )  # fmt: skip
    step, kernels = job.step, job.given(name)
    own = _apart(plan.buffer[step.out.buffer], op, pair, tensors[op.output].shape)
    of = replace(
        plan.buffer[kernels.buffer], name=f"{kernels.buffer} {own.name}", shape=values.shape,
        map=packed(values.shape, 8),
    )  # fmt: skip
    lo, size = zip(*((start, stop - start) for start, stop in ranges), strict=True)
    made = Slice(own.name, (*lo, step.out.lo[2]), (*size, step.out.size[2]), step.out.copy)
    taken = Slice(of.name, (kernels.lo[0], 0, 0, 0), (kernels.size[0], *values.shape[1:]))
    ins = tuple(taken if piece is kernels else piece for piece in step.ins)
    constants = {each: graph.constants[each] for each in op.parameters} | {name: values}
    buffers = {**plan.buffer, own.name: own, of.name: of}
    return instead(
        job, conv, replace(step, out=made, ins=ins, order=()), tensors, constants, buffers
    )


def _apart(
    out: Buffer, op: TransposeConv, pair: tuple[Phase, Phase], shape: tuple[int, ...]
) -> Buffer:
    """Return the place of every ``stride``-th row and column, as a place of its own."""
    (first, left), (down, right) = (phase.start for phase in pair), op.stride
    out = replace(out, name=f"{out.name} {first} {left}", shape=shape)
    if isinstance(out.map, Affine):
        row, column, channel = out.map.strides
        base = out.map.base + row * first + column * left
        return replace(out, map=Affine(base, (row * down, column * right, channel)))
    assert isinstance(out.map, Rows), out.map
    column, channel = out.map.strides
    cells = tuple(cell + column * left for cell in out.map.cells[first::down])
    return replace(out, map=Rows(cells, (column * right, channel)))


WRITERS = {"int8.transpose_conv": compute}
