"""Fully connected: for each output a sum over the input, whatever its shape."""

from __future__ import annotations

from math import prod

from pipeline.codegen.c import nest, window
from pipeline.codegen.c.values import Value
from pipeline.codegen.int8 import weights
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.dense import Dense


def compute(job: Job) -> None:
    op = job.operator(Dense)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    piece, held = job.given(source.name), job.program.box(job.given(name))
    taken = job.program.box(piece)
    outs = job.box[0]
    if job.partial:
        taken = tuple(mine.within(other) for mine, other in zip(taken, held[1:], strict=True))
        outs = outs.within(held[0])
    view = job.view("in", piece, taken)
    shape = source.shape
    read = weights.weights(job, words=("c_out", *map(str, shape)), taken=taken)
    extents, first = [part.extent for part in taken], Value(0)
    if read.row:
        loops, counts = nest.nest(extents, [view.strides, read.row.strides], [view, read.row])
    else:
        steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        loops, counts = nest.nest(extents, [view.strides, steps], [view])
        for part, step in zip(taken, steps, strict=True):
            first = first + part.start * step
    at_once = not job.apart and job.unit()[0] > 1
    job.call(
        "int8/dense",
        f"{op.name}: dense {shape_text(shape)} -> {shape_text(job.target.shape)}{job.words}",
        {"in": view, **read.views, "out": job.out((outs,), ring_axes=1)},
        {**window.named("o", outs), **counts, "first": first, **read.values},
        order=job.order,
        nest=loops,
        dot=weights.least(job) if _side_by_side(loops) else None,
        inputs=source.size,
        zero=source.zero_point,
        weights=read.array,
        ending=job.ending,
        all=outs.most if at_once else 0,
    )


def _side_by_side(loops: nest.Nest) -> bool:
    """Whether one loop goes through inputs and weights byte by byte."""
    plain = not any(loops.begins) and not loops.ordered
    return plain and [axis.strides for axis in loops.axes] == [(1, 1)]


WRITERS = {"int8.dense": compute}
