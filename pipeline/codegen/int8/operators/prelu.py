"""A rectifier with slopes: each element by one of two factors."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.int8 import expressions, nest
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.operators import elements
from pipeline.codegen.int8.requantize import scaling, stored
from pipeline.graph import broadcast
from pipeline.graph.operator import limits
from pipeline.graph.operators.prelu import Prelu


def compute(job: Job) -> None:
    op, out = job.op, job.out(ring_axes=elements.RINGS)
    assert isinstance(op, Prelu)
    job.refuse_overlap()
    names, tensors = (op.inputs[0], op.parameters[0]), job.program.graph.tensors
    views = [
        elements.operand(job, name).named(called)
        for name, called in zip(names, ("in", "slope"), strict=True)
    ]
    steps = [
        elements.broadcast_strides(view, tensors[name].shape, job.target.shape)
        for view, name in zip(views, names, strict=True)
    ]
    extents = [part.extent for part in job.box]
    loops, counts = nest.nest(extents, [out.strides, *steps], [out, *views])
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
    job.program.call(
        op.name,
        "int8/elements",
        f"{op.name}: rectifier with slopes of {shape_text(tensors[names[0]].shape)}",
        {**{view.name: view for view in views}, "out": out},
        counts,
        job.apart,
        nest=loops,
        lines=(
            f"const int32_t x = {value};",
            f"const int32_t value = x >= 0 ? {above('x', '0')} : {below(f'x * {factor}', '0')};",
            out.store(loops.at(0), result),
        ),
    )  # fmt: skip


WRITERS = {"int8.prelu": compute}
