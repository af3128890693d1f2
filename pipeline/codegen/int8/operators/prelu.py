"""A rectifier with slopes: each element by one of two factors."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c import expressions
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.operators import elements
from pipeline.codegen.int8.requantize import scaling, stored
from pipeline.graph import broadcast
from pipeline.graph.operator import limits
from pipeline.graph.operators.prelu import Prelu


def compute(job: Job) -> None:
    op, out = job.operator(Prelu), job.out(ring_axes=elements.RINGS)
    names, tensors = (op.inputs[0], op.parameters[0]), job.program.graph.tensors
    views = [
        elements.operand(job, name).named(called)
        for name, called in zip(names, ("in", "slope"), strict=True)
    ]
    steps = [
        elements.broadcast_strides(view, tensors[name].shape, job.target.shape)
        for view, name in zip(views, names, strict=True)
    ]
    loops, counts = elements.nested(job, [out.strides, *steps], [out, *views])
    ends, slopes = (broadcast.extremes(name, tensors) for name in names)
    products = np.outer(ends, slopes)
    constants = job.program.constants
    above = scaling(constants, op.name, op.requant, (int(ends.min()), int(ends.max())))
    below = scaling(constants, op.name, op.below, (int(products.min()), int(products.max())))
    value, factor = (
        expressions.centred(view.load(loops.at(number)), tensors[name].zero_point)
        for number, (view, name) in enumerate(zip(views, names, strict=True), 1)
    )
    result = stored("value", limits(job.target, op.clip), job.target.zero_point)
    lines = (
        f"const int32_t x = {value};",
        f"const int32_t value = x >= 0 ? {above('x', '0')} : {below(f'x * {factor}', '0')};",
    )
    about = f"{op.name}: rectifier with slopes of {shape_text(tensors[names[0]].shape)}"
    called = {**{view.name: view for view in views}, "out": out}
    elements.call(job, about, called, loops, counts, lines, result)


WRITERS = {"int8.prelu": compute}
