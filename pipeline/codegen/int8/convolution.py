"""Declare what a convolution may read, and dense layers as convolutions, for all writers."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from math import prod
from typing import TypeVar

from pipeline.codegen.bound import bound
from pipeline.codegen.c.values import Span, whole
from pipeline.codegen.int8.job import Job
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Constants, Tensors
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.plan.vocabulary import Affine, Buffer, Compute, Slice, Table, packed

T = TypeVar("T")


def ranges(job: Job, op: Conv2d, depth: int) -> tuple[tuple[Span, Span], Span, Span]:
    """Return what may be read (rows, columns), a group's channels to add, and the output channels.

    A whole result reads all that its windows reach; a partial one what the step's slices name.
    """
    plain = (whole(job.source.shape[0]), whole(job.source.shape[1]))
    held = job.program.box(job.given(op.parameters[0]))
    if not job.partial:
        return plain, whole(depth), job.box[2]
    _, kernel_h, kernel_w, _ = job.tensor(op.parameters[0]).shape
    rows, columns, channels = job.program.box(job.given(job.source.name))
    if job.source.shape[:2] == (kernel_h, kernel_w) and not any(op.padding):
        rows, columns = rows.within(held[1]), columns.within(held[2])  # of taps, too
    elif not (held[1].covers(whole(kernel_h)) and held[2].covers(whole(kernel_w))):
        raise ThimbleError(f"{op.name}: code for this core takes a kernel's taps all at once")
    outs = job.box[2].within(held[0])
    if op.groups == 1:
        return (rows, columns), channels.within(held[3]), outs
    return (rows, columns), held[3] if depth > 1 else whole(1), outs


def of_dense(job: Job) -> Job:
    """Return a dense layer as a convolution whose one window is all of its input: the same step, in
    a program that knows its tensors as images. An input in one piece is one pixel."""
    op, plan, held_by = job.operator(Dense), job.program.plan, job.program.graph.constants
    held, shape = job.program.buffer(job.given(op.inputs[0])), job.source.shape
    whole = held.run(held.box) is not None and not (job.partial or job.held(op.parameters[0]))
    image = (1, 1, prod(shape)) if whole else (*(1,) * (3 - len(shape)), *shape)
    ways = {op.inputs[0]: image, op.parameters[0]: (job.target.size, *image)}
    ways[op.output] = 1, 1, job.target.size
    buffers = dict(plan.buffer)
    tensors = {name: replace(job.tensor(name), shape=shape) for name, shape in ways.items()}
    tensors |= {name: job.tensor(name) for name in op.parameters[1:]}
    constants = {n: held_by[n].reshape(tensors[n].shape) for n in op.parameters}
    conv = Conv2d(op.name, op.inputs, op.output, op.parameters, clip=op.clip, requant=op.requant)

    def moved(piece: Slice) -> Slice:
        buffer = plan.buffer[piece.buffer]
        if buffer.tensor not in ways:
            return piece
        own, at = _reshaped(buffer, ways[buffer.tensor]), int(buffer.tensor in op.parameters)
        buffers[own.name] = own
        if whole and buffer.tensor != op.output:  # all that is added up
            return Slice(
                own.name, (*piece.lo[:at], 0, 0, 0), (*piece.size[:at], *image), piece.copy
            )
        more = len(own.shape) - len(buffer.shape)
        lo, size = _with(piece.lo, at, (0,) * more), _with(piece.size, at, (1,) * more)
        return replace(piece, buffer=own.name, lo=lo, size=size)

    out, ins = moved(job.step.out), tuple(map(moved, job.step.ins))
    step = replace(job.step, out=out, ins=ins, unit=ways[op.output], order=())
    return instead(job, conv, step, tensors, constants, buffers)


def instead(
    job: Job, conv: Conv2d, step: Compute, tensors: Tensors, constants: Constants,
    buffers: Mapping[str, Buffer],
) -> Job:  # fmt: skip
    """Return ``step``, which computes ``conv``, in a program that knows these tensors and buffers
    alone, and adds to the same C."""
    found, plan = copy(job.program), job.program.plan
    found.graph = Graph(conv.name, tensors, (conv,), constants, conv.inputs[:1], (conv.output,))
    found.operators = {conv.name: conv}
    track = replace(plan.tracks[0], steps=(bound(step, dict.fromkeys(found.loops, 0)),))
    found.plan = replace(plan, buffers=tuple(buffers.values()), tracks=(track,), resident=())
    return Job(found, conv, step)


def _with(given: tuple[T, ...], at: int, more: tuple[T, ...]) -> tuple[T, ...]:
    return (*given[:at], *more, *given[at:])


def _reshaped(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    """Return a buffer that holds what ``buffer`` does as a tensor of this shape."""
    name, at = f"{buffer.name} as an image", int(len(shape) == 4)
    more, first = len(shape) - len(buffer.shape), buffer.run(buffer.box)
    place = buffer.map
    if first is not None:
        place = replace(packed(shape, buffer.bits), base=first)
    elif isinstance(place, Affine):
        strides, rings = (_with(each, at, (0,) * more) for each in (place.strides, place.rings))
        held = _with(place.held, at, ((0, 1),) * more) if place.held else ()
        place = Affine(place.base, strides, rings, held)
    elif more:
        place = Table.of(buffer.addresses(buffer.box))
    return replace(buffer, name=name, shape=shape, map=place)
